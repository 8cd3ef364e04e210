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

fn sized(c: &Call) -> Outcome {
    let mut read = vec![];
    macro_rules! numbers {
        ($($name:literal: $t:ty)*) => { $(
            if let Some(n) = c.number::<$t>(concat!("/", $name))? {
                read.push(($name.to_string(), Json::Number(n.to_string())));
            }
        )* };
    }
    numbers! { "i8": i8 "u8": u8 "i16": i16 "u16": u16 "i32": i32 "u32": u32 "i64": i64 "u64": u64 "loose_i8": i8
        "f32": f32 "f64": f64 "three/0": i8 "three/1": i8 "three/2": i8 }
    c.number::<u8>("/loose_map/a~1b/1")?;
    let rest = ["flag", "text", "data", "at", "any", "loose_text", "map"];
    read.extend(rest.iter().map(|name| (name.to_string(), c.params.get(name).clone())));
    Ok(Json::Object(read))
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
    "echo" => echo, "text" => text, "sized" => sized, "fail" => fail, "invalid" => invalid, "warn" => warn, "about" => about,
    "call" => call, "fetch" => fetch, "secret" => secret, "notes" => notes,
}
