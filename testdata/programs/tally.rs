//! tally: a parley/1 plugin in Rust, which implements sdk/abi.md with only std.
use std::collections::BTreeMap;

// Host functions. A plugin declares those that it uses.
#[link(wasm_import_module = "parley")]
extern "C" {
    fn log(level: i32, ptr: *const u8, len: usize);
}

/// Allocates a block for the host to write to. It is never freed, because the instance ends with the call.
#[no_mangle]
pub extern "C" fn parley_alloc(len: usize) -> *mut u8 {
    Box::leak(vec![0; len.max(1)].into_boxed_slice()).as_mut_ptr()
}

/// Handles a request of `len` bytes at `ptr` and returns the response as `ptr << 32 | len`.
///
/// # Safety
/// The block must be from `parley_alloc`.
#[no_mangle]
pub unsafe extern "C" fn parley_call(ptr: *const u8, len: usize) -> u64 {
    let request = std::str::from_utf8_unchecked(std::slice::from_raw_parts(ptr, len));
    let response = Box::leak(answer(request).into_boxed_str());
    (response.as_ptr() as u64) << 32 | response.len() as u64
}

fn answer(request: &str) -> String {
    let request = Reader { text: request, at: 0 }.value();
    let params = request.member("params");
    match request.member("tool") {
        Json::Text(tool) if tool == "count" => count(params),
        Json::Text(tool) if tool == "factor" => factor(params),
        _ => failure(1, "tally has no such tool"),
    }
}

/// Counts the words of a text and names those that occur most often.
fn count(params: &Json) -> String {
    let (text, top) = match (params.member("text"), params.member("top")) {
        (Json::Text(text), Json::Number(top)) => (text.to_lowercase(), top.parse().unwrap_or(0)),
        _ => return failure(1, "the host has checked and completed the parameters"),
    };
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()) {
        *times.entry(word).or_default() += 1;
    }
    if times.is_empty() {
        return failure(10, "the text holds no word");
    }
    let total: usize = times.values().sum();
    let line = format!("{} words, {} different ones", total, times.len());
    unsafe { log(0, line.as_ptr(), line.len()) };
    let mut sorted: Vec<_> = times.into_iter().collect();
    sorted.sort_by_key(|&(_, n)| std::cmp::Reverse(n)); // stable: the same number in alphabetical order
    sorted.truncate(top);
    let words: Vec<_> = sorted
        .iter()
        .map(|(w, n)| format!(r#"{{"word":{},"times":{}}}"#, quote(w), n))
        .collect();
    success(&format!(r#"{{"total":{},"words":[{}]}}"#, total, words.join(",")))
}

/// Factors a number by trial division, which takes long for a large prime.
fn factor(params: &Json) -> String {
    let mut n: u64 = match params.member("n") {
        Json::Number(n) => match n.parse() {
            Ok(n) => n,
            Err(_) => return invalid("/n", "a whole number without an exponent", n),
        },
        _ => return failure(1, "the host has checked the parameters"),
    };
    let mut factors = Vec::new();
    let mut d = 2;
    while d <= n / d {
        while n % d == 0 {
            factors.push(d.to_string());
            n /= d;
        }
        d += if d == 2 { 1 } else { 2 };
    }
    factors.push(n.to_string());
    success(&format!(r#"{{"factors":[{}]}}"#, factors.join(",")))
}

fn success(result: &str) -> String {
    format!(r#"{{"ok":true,"result":{}}}"#, result)
}

fn failure(exit: u8, message: &str) -> String {
    format!(r#"{{"ok":false,"exit":{},"message":{}}}"#, exit, quote(message))
}

fn invalid(pointer: &str, expected: &str, provided: &str) -> String {
    format!(
        r#"{{"ok":false,"invalid":[{{"pointer":{},"expected":{},"provided":{}}}]}}"#,
        quote(pointer),
        quote(expected),
        quote(provided)
    )
}

/// A JSON value. Numbers are kept as they are written; values that no tool accepts are dropped.
enum Json {
    Object(Vec<(String, Json)>),
    Text(String),
    Number(String),
    Other,
}

impl Json {
    fn member(&self, name: &str) -> &Json {
        match self {
            Json::Object(members) => members.iter().find(|(n, _)| n == name).map_or(&Json::Other, |(_, v)| v),
            _ => &Json::Other,
        }
    }
}

/// Writes a text as JSON.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out += &format!("\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out + "\""
}

/// Reads JSON, which is valid because it comes from the host.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self) -> Json {
        match self.peek() {
            b'{' => {
                let mut members = Vec::new();
                self.list(b'}', |r| {
                    let name = r.string();
                    r.peek();
                    r.at += 1; // the colon
                    members.push((name, r.value()));
                });
                Json::Object(members)
            }
            b'[' => {
                self.list(b']', |r| drop(r.value()));
                Json::Other
            }
            b'"' => Json::Text(self.string()),
            b'-' | b'0'..=b'9' => Json::Number(self.word().to_string()),
            _ => {
                self.word();
                Json::Other
            }
        }
    }

    /// Skips white space and returns the next byte.
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while bytes[self.at].is_ascii_whitespace() {
            self.at += 1;
        }
        bytes[self.at]
    }

    /// Reads the items between brackets.
    fn list(&mut self, end: u8, mut item: impl FnMut(&mut Self)) {
        self.at += 1;
        while self.peek() != end {
            item(self);
            if self.peek() == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
    }

    /// Reads a number, true, false or null.
    fn word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let n = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c))
            .unwrap_or(rest.len());
        self.at += n;
        &rest[..n]
    }

    fn string(&mut self) -> String {
        self.peek();
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let n = rest.find(|c| c == '"' || c == '\\').unwrap();
            out.push_str(&rest[..n]);
            self.at += n + 1;
            if rest.as_bytes()[n] == b'"' {
                return out;
            }
            out.push(self.escape());
        }
    }

    fn escape(&mut self) -> char {
        self.at += 1;
        match self.text.as_bytes()[self.at - 1] {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let mut code = self.hex();
                if (0xd800..0xdc00).contains(&code) && self.text[self.at..].starts_with("\\u") {
                    self.at += 2; // the other half of a pair
                    code = 0x10000 + ((code - 0xd800) << 10) + (self.hex() & 0x3ff);
                }
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            c => c as char,
        }
    }

    fn hex(&mut self) -> u32 {
        self.at += 4;
        u32::from_str_radix(&self.text[self.at - 4..self.at], 16).unwrap()
    }
}
