//! The gateway between a client and a provider, all in this process.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proem::models::Models;
use proem_gateway::{Analysis, Gateway, GatewayListeners, GatewayOptions, ObservedCall, Upstream, serve};
use tokio::sync::oneshot;

/// A time after which a test that waits has failed.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// A running gateway, whose route `/custom/up/` goes to an address.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) calls: Arc<Mutex<Vec<ObservedCall>>>,
    pub(crate) analysis: Analysis,
    end: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    pub(crate) fn new(upstream: SocketAddr) -> Self {
        Self::with(upstream, |_| {})
    }

    pub(crate) fn with(upstream: SocketAddr, change: impl FnOnce(&mut GatewayOptions)) -> Self {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&calls);
        let models = Models::load(&proem::Request::default(), proem::Caller::REMOTE).unwrap();
        let receiver = Box::new(move |call| kept.lock().unwrap().push(call));
        let analysis = Analysis::start(Analysis::in_memory(models), receiver).unwrap();
        let mut options =
            GatewayOptions { drain_time_max: Duration::from_secs(5), ..GatewayOptions::default() };
        let url = Upstream::parse(&format!("http://{upstream}")).unwrap();
        for name in ["up", "anthropic", "openai", "gemini"] {
            options.routes.set(name, Arc::clone(&url));
        }
        change(&mut options);
        let gateway = Gateway::new(options, Some(&analysis), [7; 32]);
        let (end, ended) = oneshot::channel::<()>();
        let (bound, address) = channel();
        let own = Arc::clone(&gateway);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.unwrap().block_on(async {
                let listeners = GatewayListeners::bind(&["127.0.0.1:0".parse().unwrap()]).unwrap();
                bound.send(listeners.addresses().unwrap()[0]).unwrap();
                serve(listeners, own, async {
                    let _ = ended.await;
                })
                .await;
            });
        });
        let address = address.recv().unwrap();
        Self { address, gateway, calls, analysis, end: Some(end), thread: Some(thread) }
    }

    /// Begins the end, without waiting for it.
    pub(crate) fn end(&mut self) {
        drop(self.end.take());
    }

    /// Waits for the end.
    pub(crate) fn join(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// Sends a request and reads until the gateway closes.
    pub(crate) fn ask(&self, request: impl AsRef<[u8]>) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(request.as_ref()).unwrap();
        read_all(&mut stream)
    }

    /// Returns the calls that were analysed.
    pub(crate) fn observed(&self) -> Vec<ObservedCall> {
        self.analysis.flush();
        self.calls.lock().unwrap().clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.join();
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
    stream.set_write_timeout(Some(WAIT_MAX)).unwrap();
    stream
}

/// Reads until the end of the connection.
pub(crate) fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    all
}

/// Reads until the bytes end in `end`.
pub(crate) fn read_until(stream: &mut TcpStream, end: &[u8]) -> Vec<u8> {
    let (mut all, mut byte) = (Vec::new(), [0]);
    while !all.ends_with(end) {
        let read = stream.read(&mut byte).unwrap();
        assert!(read > 0, "the connection ended after {:?}", String::from_utf8_lossy(&all));
        all.push(byte[0]);
    }
    all
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A provider: each connection is handled by a function with its number.
pub(crate) struct Provider {
    pub(crate) address: SocketAddr,
    requests: Receiver<Vec<u8>>,
}

/// The provider's side of a connection.
pub(crate) struct Side {
    pub(crate) stream: TcpStream,
    pub(crate) number: usize,
    requests: Sender<Vec<u8>>,
}

impl Provider {
    pub(crate) fn new(handle: impl Fn(&mut Side) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = channel();
        let handle = Arc::new(handle);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let (stream, handle, sender) = (stream.unwrap(), Arc::clone(&handle), sender.clone());
                stream.set_nodelay(true).unwrap();
                std::thread::spawn(move || handle(&mut Side { stream, number, requests: sender }));
            }
        });
        Self { address, requests }
    }

    /// Answers every request with the same bytes, and keeps the connection.
    pub(crate) fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::new(move |side| {
            while side.request().is_some() {
                if side.stream.write_all(&answer).is_err() {
                    return;
                }
            }
        })
    }

    /// Returns the next request that arrived, as it arrived.
    pub(crate) fn request(&self) -> Vec<u8> {
        self.requests.recv_timeout(WAIT_MAX).unwrap()
    }

    /// Tells that no request has arrived.
    pub(crate) fn is_untouched(&self) -> bool {
        self.requests.try_recv().is_err()
    }
}

impl Side {
    /// Reads a request; `None` at the end of the connection.
    pub(crate) fn request(&mut self) -> Option<Vec<u8>> {
        let request = read_message(&mut self.stream)?;
        let _ = self.requests.send(request.clone());
        Some(request)
    }

    pub(crate) fn reset(&self) {
        let linger = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
        linger.unwrap();
    }

    pub(crate) fn shut_down(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }
}

/// Reads a message with its body by `Content-Length` or chunks; `None` if it does not end.
pub(crate) fn read_message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut all, mut byte) = (Vec::new(), [0]);
    while !all.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        all.push(byte[0]);
    }
    let head = text(&all).to_ascii_lowercase();
    if head.contains("transfer-encoding: chunked") {
        loop {
            let line = some_line(stream)?;
            let size = text(&line);
            let size =
                size.trim().split(';').next().map(str::trim).map(|size| usize::from_str_radix(size, 16));
            let size = size?.ok()?;
            all.extend(line);
            if size == 0 {
                break;
            }
            let mut data = vec![0; size + 2];
            stream.read_exact(&mut data).ok()?;
            all.extend(data);
        }
        loop {
            let line = some_line(stream)?;
            let is_end = line == b"\r\n";
            all.extend(line);
            if is_end {
                return Some(all);
            }
        }
    }
    let length = head.split("content-length:").nth(1).and_then(|rest| rest.lines().next());
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    all.extend(body);
    Some(all)
}

fn some_line(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while !line.ends_with(b"\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        line.push(byte[0]);
    }
    Some(line)
}

/// A generator of equal numbers in each run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % most as u64).unwrap()
    }

    pub(crate) fn pick<'l, T>(&mut self, list: &'l [T]) -> &'l T {
        &list[self.below(list.len())]
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| u8::try_from(self.next() & 0xFF).unwrap()).collect()
    }
}
