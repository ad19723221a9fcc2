//! Responses of the gateway itself: refusals, and providers that cannot be reached.

/// A response of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnAnswer {
    pub(crate) status: &'static str,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl OwnAnswer {
    pub(crate) fn new(status: &'static str, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), hint: String::new() }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Formats the response; the connection closes after it.
    pub(crate) fn bytes(&self, is_head: bool) -> Vec<u8> {
        let body = serde_json::json!({
            "type": "error",
            "error": {"type": "proem_gateway", "code": self.code, "message": self.message, "hint": self.hint},
        });
        let body = format!("{body}\n");
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nX-Proem-Error: {}\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
            self.status,
            body.len(),
            self.code
        );
        (if is_head { head } else { head + &body }).into_bytes()
    }
}
