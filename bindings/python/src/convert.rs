//! Values of Python as JSON text, answers as values of Python, and errors as exceptions.

use std::collections::HashMap;

use proem_api::Failure;
use proem_core::limit::REQUEST_BYTES_MAX;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::value::RawValue;

/// The deepest nesting of values: that of the JSON reader.
const DEPTH_MAX: usize = 120;

/// The field whose text is JSON already.
const MESSAGES: &str = "messages";

/// Writes keyword arguments as the JSON of a request.
pub(crate) fn fields(fields: Option<&Bound<'_, PyDict>>) -> PyResult<String> {
    let mut json = Writer { text: "{".to_owned(), path: Vec::new() };
    for (name, value) in fields.into_iter().flat_map(|fields| fields.iter()) {
        json.member(&name, &value)?;
    }
    json.text.push('}');
    Ok(json.text)
}

/// Writes a value as JSON. `what` names it in errors.
pub(crate) fn value(what: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut json = Writer { text: String::new(), path: vec![what.to_owned()] };
    json.value(value)?;
    Ok(json.text)
}

/// Writes values as JSON text.
struct Writer {
    text: String,
    /// The way to the present value, for errors.
    path: Vec<String>,
}

impl Writer {
    fn member(&mut self, name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let Ok(name) = name.cast::<PyString>() else {
            return Err(self.refused(name.py(), "has a key that is not a text", "use texts as keys"));
        };
        let name = self.utf8(name)?;
        if !self.text.ends_with('{') {
            self.text.push(',');
        }
        self.string(&name);
        self.text.push(':');
        self.path.push(name);
        match self.path.as_slice() {
            [name] if name == MESSAGES => self.messages(value)?,
            [first, name] if first == "per_prompt" && name == MESSAGES => self.messages(value)?,
            _ => self.value(value)?,
        }
        self.path.pop();
        Ok(())
    }

    /// Writes messages: a list, or JSON text whose spelling is kept.
    fn messages(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Some(raw) = self.raw(value)? {
            self.text.push_str(&raw);
            return Ok(());
        }
        let Ok(list) = value.cast::<PyList>() else { return self.value(value) };
        self.text.push('[');
        for (index, item) in list.iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            self.path.push(index.to_string());
            match self.raw(&item)? {
                Some(raw) => self.text.push_str(&raw),
                None => self.value(&item)?,
            }
            self.path.pop();
        }
        self.text.push(']');
        Ok(())
    }

    fn raw(&self, value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        if let Ok(text) = value.cast::<PyString>() {
            return self.utf8(text).map(Some);
        }
        let Ok(bytes) = value.cast::<PyBytes>() else { return Ok(None) };
        let text = std::str::from_utf8(bytes.as_bytes());
        text.map(|text| Some(text.to_owned()))
            .map_err(|_| self.refused(value.py(), "is not UTF-8", "encode it as UTF-8"))
    }

    fn value(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.path.len() > DEPTH_MAX {
            return Err(self.refused(
                value.py(),
                "is nested too deeply",
                "check that it does not contain itself",
            ));
        }
        if self.text.len() > REQUEST_BYTES_MAX {
            let what = format!("is too long: a request has at most {REQUEST_BYTES_MAX} bytes");
            return Err(self.refused(value.py(), &what, "give less"));
        }
        if value.is_none() {
            self.text.push_str("null");
        } else if let Ok(text) = value.cast::<PyString>() {
            let text = self.utf8(text)?;
            self.string(&text);
        } else if let Ok(is_true) = value.cast::<PyBool>() {
            self.text.push_str(if is_true.is_true() { "true" } else { "false" });
        } else if value.is_instance_of::<PyInt>() {
            // Of a subclass such as an enumeration, the number.
            let number = value.call_method0("__int__").and_then(|number| number.str());
            let number =
                number.map_err(|_| self.refused(value.py(), "is too large a number", "give it as text"))?;
            self.text.push_str(number.to_str()?);
        } else if let Ok(number) = value.cast::<PyFloat>() {
            if !number.value().is_finite() {
                return Err(self.refused(
                    value.py(),
                    "is not a finite number",
                    "leave it out, or give another one",
                ));
            }
            self.text.push_str(value.call_method0("__repr__")?.cast::<PyString>()?.to_str()?);
        } else if let Ok(members) = value.cast::<PyDict>() {
            self.text.push('{');
            for (name, value) in members.iter() {
                self.member(&name, &value)?;
            }
            self.text.push('}');
        } else {
            self.other(value)?;
        }
        Ok(())
    }

    /// Writes a list, a path, or an object that describes itself.
    fn other(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            self.text.push('[');
            for (index, item) in value.try_iter()?.enumerate() {
                if index > 0 {
                    self.text.push(',');
                }
                self.path.push(index.to_string());
                self.value(&item?)?;
                self.path.pop();
            }
            self.text.push(']');
            return Ok(());
        }
        if value.hasattr("__fspath__")? {
            return self.value(&value.call_method0("__fspath__")?);
        }
        // A model of pydantic, such as the blocks that the SDKs of providers return.
        if value.hasattr("model_dump")? && !value.is_instance_of::<pyo3::types::PyType>() {
            let options = PyDict::new(value.py());
            options.set_item("mode", "json")?;
            options.set_item("exclude_unset", true)?;
            return self.value(&value.call_method("model_dump", (), Some(&options))?);
        }
        let kind = value.get_type().name()?.to_string();
        let what = format!("is of the type `{kind}`, which JSON does not have");
        Err(self.refused(value.py(), &what, "give texts, numbers, lists and dictionaries"))
    }

    fn utf8(&self, text: &Bound<'_, PyString>) -> PyResult<String> {
        let lone = "has a lone surrogate, which no UTF-8 text has";
        text.to_str()
            .map(str::to_owned)
            .map_err(|_| self.refused(text.py(), lone, "decode it with `errors=\"replace\"`, or remove it"))
    }

    /// Writes a text with the escapes that JSON wants.
    fn string(&mut self, text: &str) {
        self.text.push('"');
        let mut rest = text;
        while let Some(at) = rest.find(|character: char| character < ' ' || matches!(character, '"' | '\\')) {
            let (plain, special) = rest.split_at(at);
            self.text.push_str(plain);
            let mut characters = special.chars();
            match characters.next() {
                Some(quoted @ ('"' | '\\')) => self.text.extend(['\\', quoted]),
                Some('\n') => self.text.push_str("\\n"),
                Some('\r') => self.text.push_str("\\r"),
                Some('\t') => self.text.push_str("\\t"),
                Some(control) => self.text.push_str(&format!("\\u{:04x}", u32::from(control))),
                None => {}
            }
            rest = characters.as_str();
        }
        self.text.push_str(rest);
        self.text.push('"');
    }

    fn refused(&self, py: Python<'_>, why: &str, hint: &str) -> PyErr {
        let path = if self.path.is_empty() {
            "the request".to_owned()
        } else {
            format!("`{}`", self.path.join("."))
        };
        let mut failure = Failure::bad_request(format!("{path} {why}")).with_hint(hint);
        failure.place.field = self.path.first().cloned();
        raised(py, &failure)
    }
}

/// Reads an answer.
pub(crate) fn loads<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let loads =
        LOADS.get_or_try_init(py, || Ok::<_, PyErr>(py.import("json")?.getattr("loads")?.unbind()))?;
    loads.bind(py).call1((json,))
}

/// Reads an answer that is an object: a dictionary that also has the JSON text.
pub(crate) fn answer<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    static ANSWER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = || Ok::<_, PyErr>(py.import("proem._answer")?.getattr("Answer")?.unbind());
    ANSWER.get_or_try_init(py, class)?.bind(py).call1((loads(py, json)?, json))
}

/// Returns a field of an object as JSON text, in its spelling; `None` if the object does not have it.
#[pyfunction]
pub(crate) fn raw_field(json: &str, name: &str) -> Option<String> {
    let fields: HashMap<String, Box<RawValue>> = serde_json::from_str(json).ok()?;
    fields.get(name).map(|value| value.get().to_owned())
}

/// Makes the exception of an error.
pub(crate) fn raised(py: Python<'_>, failure: &Failure) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let place = PyDict::new(py);
        let parts = &failure.place;
        for (name, text) in [("path", &parts.path), ("field", &parts.field)] {
            if let Some(text) = text {
                place.set_item(name, text)?;
            }
        }
        for (name, number) in [("line", parts.line), ("column", parts.column)] {
            if let Some(number) = number {
                place.set_item(name, number)?;
            }
        }
        let place = (!place.is_empty()).then_some(place);
        let arguments = (failure.code, &failure.message, failure.hint.as_deref(), place, failure.kind);
        let error = py.import("proem._errors")?.getattr("error_of")?.call1(arguments)?;
        Ok(PyErr::from_value(error))
    };
    make().unwrap_or_else(|error| error)
}
