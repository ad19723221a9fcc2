//! Canonical JSON (RFC 8785): one spelling for one value, so that a digest of it shows whether something changed. The
//! order of keys and the spelling of numbers and escapes do not affect it.

use serde_json::{Map, Number, Value};

/// Returns the canonical spelling of a value.
///
/// Numbers are those of JavaScript: 64-bit floating point, in their shortest spelling. An integer that does not fit is
/// rounded, as every JavaScript reader of it does.
#[must_use]
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number_text(number)),
        Value::String(string) => write_string(string, text),
        Value::Array(items) => write_list(text, '[', ']', items, write_value),
        Value::Object(fields) => write_object(fields, text),
    }
}

fn write_object(fields: &Map<String, Value>, text: &mut String) {
    let mut entries: Vec<(&String, &Value)> = fields.iter().collect();
    // By UTF-16 code units, which differs from the order of bytes above U+FFFF.
    entries.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    write_list(text, '{', '}', &entries, |(key, value), text| {
        write_string(key, text);
        text.push(':');
        write_value(value, text);
    });
}

fn write_list<T>(text: &mut String, open: char, close: char, items: &[T], write: impl Fn(&T, &mut String)) {
    text.push(open);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(item, text);
    }
    text.push(close);
}

fn write_string(string: &str, text: &mut String) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\u{C}' => text.push_str("\\f"),
            '\r' => text.push_str("\\r"),
            control if control < ' ' => text.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => text.push(other),
        }
    }
    text.push('"');
}

/// A number as JavaScript prints it.
fn number_text(number: &Number) -> String {
    number.as_f64().map_or_else(|| number.to_string(), javascript_number)
}

fn javascript_number(number: f64) -> String {
    if number == 0.0 {
        // Includes minus zero.
        return "0".to_owned();
    }
    // The shortest digits that read back as the same number, as `d.ddde±x`.
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let point = exponent.parse::<i32>().unwrap_or(0) + 1;
    let sign = if number < 0.0 { "-" } else { "" };
    format!("{sign}{}", placed(&digits, point))
}

/// Places the decimal point after the first `point` digits, in one of JavaScript's four forms.
fn placed(digits: &str, point: i32) -> String {
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |number: i32| "0".repeat(usize::try_from(number).unwrap_or(0));
    match point {
        1..=21 if count <= point => format!("{digits}{}", zeros(point - count)),
        1..=21 => {
            let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
            format!("{whole}.{fraction}")
        }
        -5..=0 => format!("0.{}{digits}", zeros(-point)),
        _ => {
            let (first, rest) = digits.split_at(1);
            let fraction = if rest.is_empty() { String::new() } else { format!(".{rest}") };
            let exponent = point - 1;
            format!("{first}{fraction}e{}{}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        canonical_json(&serde_json::from_str(text).unwrap())
    }

    /// The examples of RFC 8785, and numbers printed by JavaScript.
    #[test]
    fn numbers_are_those_of_javascript() {
        for (written, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("1.0", "1"),
            ("1e0", "1"),
            ("10", "10"),
            ("1E30", "1e+30"),
            ("4.50", "4.5"),
            ("2e-3", "0.002"),
            ("0.000000000000000000000000001", "1e-27"),
            ("333333333.33333329", "333333333.3333333"),
            ("1e21", "1e+21"),
            ("1e20", "100000000000000000000"),
            ("999999999999999900000", "999999999999999900000"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("9007199254740993", "9007199254740992"),
            ("-123.456e-10", "-1.23456e-8"),
            ("18446744073709551615", "18446744073709552000"),
        ] {
            assert_eq!(canonical(written), expected, "{written}");
        }
    }

    #[test]
    fn keys_are_in_the_order_of_utf16() {
        let text = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
        let expected = "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{FB33}\":3}";
        assert_eq!(canonical(text), expected);
    }

    #[test]
    fn only_what_must_be_escaped_is() {
        let text = r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/\u007f\u2028\b\f\t""#;
        assert_eq!(canonical(text), "\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\u{7f}\u{2028}\\b\\f\\t\"");
    }

    #[test]
    fn white_space_and_order_do_not_matter() {
        let one = canonical(r#"{"b": [1, 2, {"y": null, "x": true}], "a": "é"}"#);
        assert_eq!(one, canonical("{\"a\":\"\\u00e9\",\"b\":[1.0,2e0,{\"x\":true,\"y\":null}]}"));
        assert_eq!(one, "{\"a\":\"é\",\"b\":[1,2,{\"x\":true,\"y\":null}]}");
    }
}
