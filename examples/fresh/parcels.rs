//! A tool whose parameter is a type of the program, with another struct and an enum inside.

use toolwright::content::ToolCall;
use toolwright::{Error, Run, ToolError, json, parameters, tool};

/// Something to deliver.
#[parameters]
struct Parcel {
    /// In kilograms.
    weight: f64,
    to: Address,
    #[serde(default)]
    speed: Speed,
}

#[parameters]
struct Address {
    /// Street and number.
    street: String,
    city: String,
}

#[parameters]
#[derive(Default)]
#[serde(rename_all = "snake_case")]
enum Speed {
    #[default]
    Standard,
    Express,
}

/// What it costs to deliver a parcel, in euros.
#[tool(read_only)]
async fn price(
    /// The parcel.
    parcel: Parcel,
) -> Result<f64, ToolError> {
    let Parcel { weight, to, speed } = parcel;
    if to.city.is_empty() || to.street.is_empty() {
        return Err(ToolError::invalid("the address is not complete"));
    }
    let base = match speed {
        Speed::Standard => 4.5,
        Speed::Express => 9.0,
    };
    Ok(base + weight / 2.0)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let run = Run::builder(price()).build()?;
    for parcel in [
        json!({"weight": 3, "to": {"street": "Hauptstr. 1", "city": "Bonn"}, "speed": "express"}),
        json!({"weight": 3, "to": {"street": "Hauptstr. 1", "city": "Bonn"}}),
        json!({"weight": 3, "to": {"street": "Hauptstr. 1"}, "speed": "slow"}),
    ] {
        let result = run.call(ToolCall::new("1", "price", json!({"parcel": parcel}))).await?;
        println!("{}", result.to_text());
    }
    Ok(())
}
