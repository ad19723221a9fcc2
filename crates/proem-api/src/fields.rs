//! The fields of two requests as one: those that were given first, and those of a call.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::failure::Failure;

/// The fields that name one thing: giving one of them removes the others.
const CHOICES: [&[&str]; 2] = [&["system", "template", "instruction"], &["cwd", "workspace"]];

/// The members of an object, in their order and spelling.
struct Members(Vec<(String, Box<RawValue>)>);

/// Returns the fields of `first` with those of `call`, which win.
pub(crate) fn merged(first: &str, call: &str) -> Result<String, Failure> {
    // Only objects have fields; the reader of requests describes everything else.
    let Ok(Members(given)) = serde_json::from_str::<Members>(call) else { return Ok(call.to_owned()) };
    let Members(mut fields) = serde_json::from_str(first)?;
    let is_given = |name: &str| given.iter().any(|(known, _)| known == name);
    fields.retain(|(name, _)| {
        let rivals = CHOICES.iter().filter(|choice| choice.contains(&name.as_str())).copied().flatten();
        !is_given(name) && !rivals.into_iter().any(|rival| is_given(rival))
    });
    fields.extend(given);
    Ok(serde_json::to_string(&Members(fields))?)
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Members, A::Error> {
                let mut all = Vec::new();
                while let Some(member) = members.next_entry()? {
                    all.push(member);
                }
                Ok(Members(all))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::merged;

    #[test]
    fn fields_of_a_call_win_and_keep_their_spelling() {
        let table = [
            (
                r#"{"model": "a", "cwd": "/x"}"#,
                r#"{"prompt": "p"}"#,
                r#"{"model":"a","cwd":"/x","prompt":"p"}"#,
            ),
            (r#"{"model": "a"}"#, r#"{"model": null}"#, r#"{"model":null}"#),
            (r#"{"system": "a"}"#, r#"{"template": "b"}"#, r#"{"template":"b"}"#),
            (r#"{"cwd": "/x"}"#, r#"{"workspace": {"files": {}}}"#, r#"{"workspace":{"files": {}}}"#),
            ("{}", r#"{"messages": [{"a": 1.50}]}"#, r#"{"messages":[{"a": 1.50}]}"#),
            ("{}", "[1]", "[1]"),
        ];
        for (first, call, expected) in table {
            assert_eq!(merged(first, call).unwrap(), expected);
        }
    }
}
