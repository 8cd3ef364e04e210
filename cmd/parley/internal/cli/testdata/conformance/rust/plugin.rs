//! Calls every part of the SDK.
mod parley;

use parley::{object, Call, Failure, HostError, Json, Level};

type Outcome = Result<Json, Failure>;

fn echo(c: &Call) -> Outcome {
    Ok(object([("value", c.params.get("value").clone())]))
}

fn text(c: &Call) -> Outcome {
    Ok(object([("text", c.params.get("text").text().unwrap().into())]))
}

fn fail(c: &Call) -> Outcome {
    match c.params.get("code").integer() {
        Some(10) => Err(Failure::exit(10, "declared \"failure\"")),
        _ => Err(Failure::exit(42, "no such code")),
    }
}

fn invalid(_: &Call) -> Outcome {
    Err(Failure::invalid("/text", "another text"))
}

fn warn(c: &Call) -> Outcome {
    c.warn("first \"warning\"");
    c.warn("second");
    Ok(object([]))
}

fn about(c: &Call) -> Outcome {
    let caller = c.request.get("caller").text().unwrap_or_default();
    Ok(object([("text", format!("{} {}", c.tool, caller).into())]))
}

fn code<T>(reply: Result<T, HostError>) -> Outcome {
    let code = reply.err().map_or("ok".to_string(), |e| e.code);
    Ok(object([("text", code.into())]))
}

fn call(c: &Call) -> Outcome {
    code(c.call_tool("text.hash", object([("text", "a".into())]), Json::Null))
}

fn fetch(c: &Call) -> Outcome {
    code(c.http(object([("url", "https://example.com".into())])))
}

fn secret(c: &Call) -> Outcome {
    code(c.read_secret("KEY"))
}

fn notes(c: &Call) -> Outcome {
    c.log(Level::Info, "a \"line\"");
    c.progress(1.0, 2.0, "half");
    Ok(object([]))
}

parley::tools! {
    "echo" => echo, "text" => text, "fail" => fail, "invalid" => invalid, "warn" => warn, "about" => about,
    "call" => call, "fetch" => fetch, "secret" => secret, "notes" => notes,
}
