//! NAME: greets people.
mod parley;

use parley::{object, Call, Failure, Json};

fn greet(call: &Call) -> Result<Json, Failure> {
    let name = call.params.get("name").text().unwrap_or_default();
    if name == "nobody" {
        return Err(Failure::exit(10, "there is nobody to greet"));
    }
    Ok(object([("text", format!("Hello, {name}").into())]))
}

parley::tools! { "greet" => greet }
