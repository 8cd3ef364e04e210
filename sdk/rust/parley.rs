//! parley: plugins of kind parley/1 (abi.md) in Rust, in this one module. It needs rustc 1.63 and std alone.
//!
//!     mod parley;
//!     use parley::{object, Call, Failure, Json};
//!
//!     fn greet(call: &Call) -> Result<Json, Failure> {
//!         let name = call.params.get("name").text().unwrap_or_default();
//!         Ok(object([("text", format!("Hello, {name}").into())]))
//!     }
//!
//!     parley::tools! { "greet" => greet }
#![allow(dead_code)]

use std::cell::RefCell;
use std::fmt;
use std::str::FromStr;

/// A JSON value. Numbers are kept as they are written, and members in their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Makes an object.
pub fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
    Json::Object(members.into_iter().map(|(name, v)| (name.to_string(), v)).collect())
}

impl Json {
    /// The member of an object, Null if there is none.
    pub fn get(&self, name: &str) -> &Json {
        match self {
            Json::Object(members) => members.iter().find(|(n, _)| n == name).map_or(&Json::Null, |(_, v)| v),
            _ => &Json::Null,
        }
    }

    /// The elements of a list; none of anything else.
    pub fn list(&self) -> &[Json] {
        match self {
            Json::List(items) => items,
            _ => &[],
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// None also for an integer beyond 64 bits; see [`Call::number`].
    pub fn integer(&self) -> Option<i64> {
        match self {
            Json::Number(n) => n.parse().ok(),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Json::Number(n) => n.parse().ok(),
            _ => None,
        }
    }

    pub fn bool(&self) -> Option<bool> {
        match self {
            Json::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The value at a JSON pointer, such as `/items/0`; Null if there is none.
    pub fn at(&self, pointer: &str) -> &Json {
        pointer.split('/').skip(1).fold(self, |v, token| match v {
            Json::List(items) => token.parse().ok().and_then(|i: usize| items.get(i)).unwrap_or(&Json::Null),
            _ => v.get(&token.replace("~1", "/").replace("~0", "~")),
        })
    }

    /// Reads one JSON value of at most 200 levels.
    pub fn parse(text: &str) -> Result<Json, String> {
        let mut r = Reader { text, at: 0 };
        let v = r.value(200)?;
        r.space();
        if r.at < text.len() {
            return Err(format!("there is more after the JSON value at byte {}", r.at));
        }
        Ok(v)
    }
}

macro_rules! from_number {
    ($($t:ty)*) => { $(impl From<$t> for Json { fn from(n: $t) -> Json { Json::Number(n.to_string()) } })* };
}
from_number! { i32 i64 u32 u64 usize }

/// Numbers that JSON does not have become null.
impl From<f64> for Json {
    fn from(n: f64) -> Json {
        if n.is_finite() { Json::Number(n.to_string()) } else { Json::Null }
    }
}

impl From<bool> for Json {
    fn from(b: bool) -> Json {
        Json::Bool(b)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_string())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::Text(text)
    }
}

impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(items: Vec<T>) -> Json {
        Json::List(items.into_iter().map(Into::into).collect())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(b) => write!(f, "{}", b),
            Json::Number(n) => f.write_str(n),
            Json::Text(text) => quote(f, text),
            Json::List(items) => {
                for (i, v) in items.iter().enumerate() {
                    write!(f, "{}{}", if i == 0 { "[" } else { "," }, v)?;
                }
                f.write_str(if items.is_empty() { "[]" } else { "]" })
            }
            Json::Object(members) => {
                for (i, (name, v)) in members.iter().enumerate() {
                    f.write_str(if i == 0 { "{" } else { "," })?;
                    quote(f, name)?;
                    write!(f, ":{}", v)?;
                }
                f.write_str(if members.is_empty() { "{}" } else { "}" })
            }
        }
    }
}

fn quote(f: &mut fmt::Formatter, text: &str) -> fmt::Result {
    use fmt::Write;
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{}", c)?,
            c if c < ' ' => write!(f, "\\u{:04x}", c as u32)?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn space(&mut self) {
        self.at += self.text[self.at..].len() - self.text[self.at..].trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn peek(&mut self) -> u8 {
        self.space();
        *self.text.as_bytes().get(self.at).unwrap_or(&0)
    }

    fn expect(&mut self, c: u8) -> Result<(), String> {
        if self.peek() != c {
            return Err(format!("expected {:?} at byte {}", c as char, self.at));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: u32) -> Result<Json, String> {
        if depth == 0 {
            return Err("the JSON value has too many levels".to_string());
        }
        match self.peek() {
            b'{' => {
                let mut members = Vec::new();
                self.list(b'}', |r| {
                    let name = r.string()?;
                    r.expect(b':')?;
                    members.push((name, r.value(depth - 1)?));
                    Ok(())
                })?;
                Ok(Json::Object(members))
            }
            b'[' => {
                let mut items = Vec::new();
                self.list(b']', |r| {
                    items.push(r.value(depth - 1)?);
                    Ok(())
                })?;
                Ok(Json::List(items))
            }
            b'"' => Ok(Json::Text(self.string()?)),
            _ => {
                let rest = &self.text[self.at..];
                let n = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)).unwrap_or(rest.len());
                self.at += n;
                match &rest[..n] {
                    "null" => Ok(Json::Null),
                    "true" => Ok(Json::Bool(true)),
                    "false" => Ok(Json::Bool(false)),
                    n if n.starts_with(|c: char| c == '-' || c.is_ascii_digit()) && n.parse::<f64>().is_ok() => {
                        Ok(Json::Number(n.to_string()))
                    }
                    _ => Err(format!("expected a JSON value at byte {}", self.at - n)),
                }
            }
        }
    }

    fn list(&mut self, end: u8, mut item: impl FnMut(&mut Self) -> Result<(), String>) -> Result<(), String> {
        self.at += 1;
        if self.peek() != end {
            item(self)?;
            while self.peek() == b',' {
                self.at += 1;
                item(self)?;
            }
        }
        self.expect(end)
    }

    fn string(&mut self) -> Result<String, String> {
        self.expect(b'"')?;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let n = rest.find(|c| c == '"' || c == '\\').ok_or("a string does not end")?;
            out.push_str(&rest[..n]);
            self.at += n + 1;
            if rest.as_bytes()[n] == b'"' {
                return Ok(out);
            }
            out.push(self.escape().ok_or_else(|| format!("an escape at byte {} is not valid", self.at))?);
        }
    }

    fn escape(&mut self) -> Option<char> {
        let c = *self.text.as_bytes().get(self.at)?;
        self.at += 1;
        Some(match c {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let mut code = self.hex()?;
                if (0xd800..0xdc00).contains(&code) && self.text[self.at..].starts_with("\\u") {
                    self.at += 2; // the other half of a pair
                    code = 0x10000 + ((code - 0xd800) << 10) + (self.hex()? & 0x3ff);
                }
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            b'"' | b'\\' | b'/' => c as char,
            _ => return None,
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}

/// Why a call fails.
#[derive(Clone, Debug)]
pub enum Failure {
    /// An exit code that the manifest declares, or 1, a message and details, which can be Null.
    Exit(i32, String, Json),
    /// A parameter that is valid by the schema and refused all the same: its JSON pointer, and what is expected.
    Invalid(String, String),
}

impl Failure {
    pub fn exit(code: i32, message: impl Into<String>) -> Failure {
        Failure::Exit(code, message.into(), Json::Null)
    }

    pub fn invalid(pointer: impl Into<String>, expected: impl Into<String>) -> Failure {
        Failure::Invalid(pointer.into(), expected.into())
    }
}

/// A failure of the host, such as `denied`, ends the call in 1 unless the plugin handles it.
impl From<HostError> for Failure {
    fn from(e: HostError) -> Failure {
        Failure::Exit(1, format!("{}: {}", e.code, e.message), Json::Null)
    }
}

/// The error of a function of the host.
#[derive(Clone, Debug)]
pub struct HostError {
    pub code: String,
    pub message: String,
    pub error: Json, // the whole of it
}

/// The severity of a line for the operator.
#[derive(Clone, Copy, Debug)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// One call of a tool. `request` is the whole request, with `granted`, `settings` and so on.
pub struct Call {
    pub tool: String,
    pub params: Json,
    pub request: Json,
    warnings: RefCell<Vec<Json>>,
}

impl Call {
    /// A parameter as a number of any type, `None` if it is not given. One that the type does not hold ends the call in 81:
    /// `let port: u16 = call.number("/port")?.unwrap_or(80);`
    pub fn number<T: FromStr + ToString>(&self, pointer: &str) -> Result<Option<T>, Failure> {
        let n = match self.params.at(pointer) {
            Json::Number(n) => n,
            _ => return Ok(None),
        };
        match n.parse::<T>() {
            Ok(v) if !v.to_string().ends_with("inf") => Ok(Some(v)), // a float too large is no error of parse
            _ => Err(Failure::invalid(pointer, format!("a value that fits {}", std::any::type_name::<T>()))),
        }
    }

    /// Adds a warning to the response.
    pub fn warn(&self, text: &str) {
        self.warnings.borrow_mut().push(text.into());
    }

    /// Calls another tool. `options` can be Null.
    pub fn call_tool(&self, tool: &str, params: Json, options: Json) -> Result<Json, HostError> {
        let mut request = vec![("tool".to_string(), tool.into()), ("params".to_string(), params)];
        if options != Json::Null {
            request.push(("options".to_string(), options));
        }
        exchange(call_tool, &Json::Object(request))
    }

    /// Makes an HTTP request: `url`, `method`, `headers`, `body` or `body_base64`.
    pub fn http(&self, request: Json) -> Result<Json, HostError> {
        exchange(http_request, &request)
    }

    /// Returns a readable secret.
    pub fn read_secret(&self, name: &str) -> Result<String, HostError> {
        let value = exchange(read_secret, &object([("name", name.into())]))?;
        Ok(value.text().unwrap_or_default().to_string())
    }

    /// Writes a line for the operator.
    pub fn log(&self, level: Level, text: &str) {
        unsafe { log(level as i32, text.as_ptr(), text.len()) }
    }

    /// Says how far the call is. A total of 0 means that it is not known.
    pub fn progress(&self, done: f64, total: f64, text: &str) {
        unsafe { progress(done, total, text.as_ptr(), text.len()) }
    }
}

#[link(wasm_import_module = "parley")]
extern "C" {
    fn call_tool(ptr: *const u8, len: usize) -> u64;
    fn http_request(ptr: *const u8, len: usize) -> u64;
    fn read_secret(ptr: *const u8, len: usize) -> u64;
    fn log(level: i32, ptr: *const u8, len: usize);
    fn progress(done: f64, total: f64, ptr: *const u8, len: usize);
}

type Import = unsafe extern "C" fn(*const u8, usize) -> u64;

fn exchange(import: Import, request: &Json) -> Result<Json, HostError> {
    let request = request.to_string();
    let packed = unsafe { import(request.as_ptr(), request.len()) };
    let reply = Json::parse(unsafe { text_at((packed >> 32) as *const u8, packed as u32 as usize) });
    let reply = reply.unwrap_or(Json::Null);
    if reply.get("ok") == &Json::Bool(true) {
        return Ok(reply.get("result").clone());
    }
    let error = reply.get("error").clone();
    let member = |name| error.get(name).text().unwrap_or_default().to_string();
    Err(HostError { code: member("code"), message: member("message"), error })
}

/// The host writes UTF-8 into blocks of parley_alloc, which live as long as the instance.
unsafe fn text_at(ptr: *const u8, len: usize) -> &'static str {
    std::str::from_utf8_unchecked(std::slice::from_raw_parts(ptr, len))
}

/// A function that runs a tool.
pub type Function = fn(&Call) -> Result<Json, Failure>;

/// Allocates a block for the host to write to, null without memory. It is never freed: the instance ends with the call.
pub fn alloc(len: usize) -> *mut u8 {
    match std::alloc::Layout::from_size_align(len.max(1), 8) {
        Ok(layout) => unsafe { std::alloc::alloc(layout) },
        Err(_) => std::ptr::null_mut(),
    }
}

/// Handles a request and returns the response as `ptr << 32 | len`.
///
/// # Safety
/// The block is from parley_alloc, and the host has written a request into it.
pub unsafe fn serve(tools: &[(&str, Function)], ptr: *const u8, len: usize) -> u64 {
    let response = Box::leak(respond(tools, text_at(ptr, len)).into_boxed_str());
    (response.as_ptr() as u64) << 32 | response.len() as u64
}

fn respond(tools: &[(&str, Function)], request: &str) -> String {
    let request = Json::parse(request).unwrap_or(Json::Null);
    let tool = request.get("tool").text().unwrap_or_default().to_string();
    let params = request.get("params").clone();
    let call = Call { tool, params, request, warnings: RefCell::new(Vec::new()) };
    let run = tools.iter().find(|(name, _)| *name == call.tool);
    let outcome = match run {
        Some((_, run)) => run(&call),
        None => Err(Failure::exit(1, "the plugin has no such tool")),
    };
    let mut response = match outcome {
        Ok(result) => vec![("ok", true.into()), ("result", result)],
        Err(Failure::Exit(code, message, details)) => {
            let mut failure = vec![("ok", false.into()), ("exit", code.into()), ("message", message.into())];
            if details != Json::Null {
                failure.push(("details", details));
            }
            failure
        }
        Err(Failure::Invalid(pointer, expected)) => {
            let given = call.params.at(&pointer).to_string();
            let provided: String = given.chars().take(100).collect();
            let violation =
                object([("pointer", pointer.into()), ("expected", expected.into()), ("provided", provided.into())]);
            vec![("ok", false.into()), ("invalid", Json::List(vec![violation]))]
        }
    };
    let warnings = call.warnings.take();
    if !warnings.is_empty() {
        response.push(("warnings", Json::List(warnings)));
    }
    Json::Object(response.into_iter().map(|(name, v)| (name.to_string(), v)).collect()).to_string()
}

/// Defines the exports of a plugin with these tools. It stands once, in the main file.
macro_rules! tools {
    ($($name:literal => $run:expr),+ $(,)?) => {
        #[no_mangle]
        pub extern "C" fn parley_alloc(len: usize) -> *mut u8 {
            $crate::parley::alloc(len)
        }

        /// # Safety
        /// The host calls it with a block from parley_alloc.
        #[no_mangle]
        pub unsafe extern "C" fn parley_call(ptr: *const u8, len: usize) -> u64 {
            const TOOLS: &[(&str, $crate::parley::Function)] = &[$(($name, $run)),+];
            $crate::parley::serve(TOOLS, ptr, len)
        }
    };
}
pub(crate) use tools;
