//! Dialects: a schema in a vendor's subset accepts nothing that the original refuses, and refuses nothing
//! that it accepts, unless the report says so.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolwright_core::{ToolChoice, ToolSpec};
use toolwright_models::dialect::{Dialect, Effect, adapt};
use toolwright_models::wire::{Delivery, define};

use crate::support::{Conversation, FORMATS, target, vendor};

/// Small values, which the schemas below accept or refuse in equal measure.
fn value() -> impl Strategy<Value = Value> {
    let plain = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        Just(json!(1.5)),
        prop::sample::select(vec!["", "a", "b", "ab", "abc", "2026-01-02"]).prop_map(Value::from),
    ];
    plain.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(vec!["a", "b", "c"]), inner, 0..3)
                .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

/// Adds keywords to a schema, each as likely as not.
fn with(base: Value, options: Vec<(&'static str, Value)>) -> impl Strategy<Value = Value> {
    let count = options.len();
    prop::collection::vec(prop::bool::weighted(0.3), count).prop_map(move |chosen| {
        let mut schema = base.clone();
        for ((key, value), _) in options.iter().zip(chosen).filter(|(_, chosen)| *chosen) {
            schema[*key] = value.clone();
        }
        schema
    })
}

fn schema() -> impl Strategy<Value = Value> {
    let words = || vec![("description", json!("d")), ("title", json!("t")), ("default", json!(null))];
    let leaf = prop_oneof![
        with(
            json!({"type": "string"}),
            [
                words(),
                vec![
                    ("minLength", json!(2)),
                    ("maxLength", json!(2)),
                    ("pattern", json!("^a")),
                    ("format", json!("date")),
                    ("enum", json!(["a", "b", 1])),
                    ("const", json!("ab"))
                ]
            ]
            .concat(),
        ),
        with(
            json!({"type": "integer"}),
            [
                words(),
                vec![
                    ("minimum", json!(1)),
                    ("maximum", json!(2)),
                    ("multipleOf", json!(2)),
                    ("exclusiveMinimum", json!(0)),
                    ("enum", json!([1, "a", null]))
                ]
            ]
            .concat(),
        ),
        with(
            json!({"type": "number"}),
            [words(), vec![("maximum", json!(1)), ("not", json!({"const": 1}))]].concat()
        ),
        with(json!({"type": "boolean"}), vec![("const", json!(true)), ("enum", json!([{"a": 1}, true]))]),
        Just(json!({"type": "null"})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({"enum": ["a", 1, null]})),
        Just(json!({"const": {"a": 1}})),
        Just(json!({"$ref": "#/$defs/A"})),
        Just(json!({"$ref": "#/$defs/A", "description": "d"})),
        Just(json!({"$ref": "#/$defs/A", "maxLength": 1})),
        Just(json!({"$ref": "#/$defs/B", "type": "integer"})),
        Just(json!({})),
    ];
    let inner = leaf.prop_recursive(3, 16, 3, |inner| {
        let list = (inner.clone(), 0_usize..64).prop_map(|(items, bits)| {
            let mut schema = json!({"type": "array", "items": items});
            let options = [
                ("minItems", json!(1)),
                ("minItems", json!(2)),
                ("maxItems", json!(1)),
                ("uniqueItems", json!(true)),
                ("contains", json!({"type": "string"})),
            ];
            let chosen = options.into_iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
            chosen.for_each(|(_, (key, value))| schema[key] = value);
            schema
        });
        let properties =
            prop::collection::btree_map(prop::sample::select(vec!["a", "b", "c"]), inner.clone(), 0..3);
        let object = (properties, inner.clone(), 0_usize..256).prop_map(|(properties, other, bits)| {
            let names: Vec<&str> = properties.keys().copied().collect();
            let mut schema = json!({"type": "object", "properties": properties});
            if bits & 1 == 1 {
                schema["required"] = json!(names);
            } else if bits & 2 == 2 {
                schema["required"] = json!(names.iter().take(1).collect::<Vec<_>>());
            }
            match bits >> 2 & 7 {
                0..=2 => schema["additionalProperties"] = json!(false),
                3 => schema["additionalProperties"] = json!(true),
                4 => schema["additionalProperties"] = other,
                _ => {}
            }
            if bits >> 5 & 7 == 7 {
                schema["minProperties"] = json!(1);
            }
            schema
        });
        let union = (
            prop::sample::select(vec!["anyOf", "oneOf", "allOf"]),
            prop::collection::vec(inner.clone(), 1..3),
            0_usize..8,
        )
            .prop_map(|(key, list, bits)| {
                let mut schema = json!({key: list});
                if bits & 1 == 1 {
                    schema["type"] = json!("string");
                }
                if bits & 2 == 2 {
                    schema["maxLength"] = json!(1);
                }
                if bits == 7 {
                    schema["anyOf"] = json!([{"type": "string"}]);
                }
                schema
            });
        prop_oneof![list, object.clone(), object, union]
    });
    inner.prop_map(|mut schema| {
        schema["$defs"] = json!({
            "A": {"type": "string", "minLength": 1},
            "B": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        });
        schema
    })
}

fn validator(schema: &Value) -> jsonschema::Validator {
    // A vendor that checks formats checks them; so does who compares.
    jsonschema::options().should_validate_formats(true).build(schema).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_dialect_that_accepts_or_refuses_more_says_so(
        schema in schema(), values in prop::collection::vec(value(), 24)
    ) {
        for dialect in [Dialect::AnthropicStrict, Dialect::OpenAiStrict] {
            let Ok(adapted) = adapt(&schema, dialect) else { continue };
            // A schema that the vendor refuses accepts nothing, and is not sent.
            if adapted.changes.iter().any(|change| change.effect == Effect::Refused) {
                continue;
            }
            let said = |wanted: &[Effect]| adapted.changes.iter().any(|change| wanted.contains(&change.effect));
            let (before, after) = (validator(&schema), validator(&adapted.schema));
            for value in &values {
                match (before.is_valid(value), after.is_valid(value)) {
                    (false, true) => prop_assert!(
                        said(&[Effect::Looser]), "{dialect:?} lets {value} pass\n{schema}\n{}", adapted.schema
                    ),
                    (true, false) => prop_assert!(
                        said(&[Effect::Tighter, Effect::Closed]), "{dialect:?} refuses {value}\n{schema}\n{}", adapted.schema
                    ),
                    _ => {}
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Without strict mode too: arguments, which are always an object, pass as they did, or the report says
    /// so.
    #[test]
    fn a_tool_that_is_told_in_another_way_means_the_same_or_says_so(
        schema in schema(), values in prop::collection::vec(value(), 24)
    ) {
        let defined = define(vendor("anthropic"), &[tool("t", schema.clone())], false).remove(0);
        let sent = &defined.json["input_schema"];
        prop_assert_eq!(&sent["type"], "object");
        prop_assert!(["anyOf", "oneOf", "allOf"].iter().all(|key| sent.get(key).is_none()), "{}", sent);
        let said = |wanted: Effect| defined.changes.iter().any(|change| change.effect == wanted);
        let (before, after) = (validator(&schema), validator(sent));
        for value in values.iter().filter(|value| value.is_object()) {
            match (before.is_valid(value), after.is_valid(value)) {
                (false, true) => prop_assert!(said(Effect::Looser), "lets {value} pass\n{schema}\n{sent}"),
                (true, false) => prop_assert!(said(Effect::Tighter), "refuses {value}\n{schema}\n{sent}"),
                _ => {}
            }
        }
    }
}

fn tool(name: &str, parameters: Value) -> ToolSpec {
    let mut tool = ToolSpec::new(name, "d");
    tool.parameters = parameters;
    tool
}

/// A tool that can be strict, one that cannot without forcing arguments on the model, and one that refers to
/// itself.
fn tools() -> Vec<ToolSpec> {
    vec![
        tool(
            "plain",
            json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}),
        ),
        tool("optional", json!({"type": "object", "properties": {"n": {"type": "integer"}}})),
        tool(
            "tree",
            json!({"$ref": "#/$defs/T", "type": "object", "$defs": {"T": {"type": "object", "properties": {
            "inner": {"$ref": "#/$defs/T"}}}}}),
        ),
    ]
}

#[test]
fn tools_are_strict_where_they_can_be_and_the_report_says_where_not() {
    let strict = |name: &str| -> Vec<bool> {
        let flag = |json: &Value| {
            ["/strict", "/function/strict", "/toolSpec/strict"]
                .iter()
                .any(|at| json.pointer(at) == Some(&json!(true)))
        };
        define(vendor(name), &tools(), true).iter().map(|tool| flag(&tool.json)).collect()
    };
    assert_eq!(strict("anthropic"), [true, true, false]);
    assert_eq!(strict("bedrock"), [true, true, false]);
    assert_eq!(strict("bedrock-invoke"), [true, true, false]);
    assert_eq!(strict("openai"), [true, false, false]);
    assert_eq!(strict("openai-chat"), [true, false, false]);
    assert_eq!(strict("google"), [false, false, false]);
    assert_eq!(strict("ollama"), [false, false, false]);
    let told = |name: &str| -> Vec<String> {
        let tools = define(vendor(name), &tools(), true);
        tools.iter().flat_map(|tool| tool.changes.iter().map(|change| change.to_string())).collect()
    };
    assert_eq!(
        told("openai"),
        [
            "/: only the named properties remain (some values the tool takes can no longer be sent)",
            "it is not sent in strict mode: `n` becomes required",
            "it is not sent in strict mode: the schema refers to itself",
        ]
    );
    assert_eq!(told("ollama"), ["the vendor has no strict mode"; 3]);
    let many: Vec<ToolSpec> =
        (0..30).map(|n| tool(&format!("t{n}"), tools()[0].parameters.clone())).collect();
    let strict = define(vendor("anthropic"), &many, true);
    assert_eq!(strict.iter().filter(|tool| tool.json["strict"] == true).count(), 20);
    assert!(define(vendor("anthropic"), &many, false).iter().all(|tool| tool.json.get("strict").is_none()));
}

/// The reason why a tool with one parameter of this schema is not sent in strict mode; empty when it is.
fn not_strict(name: &str, parameters: Value) -> String {
    let defined = define(vendor(name), &[tool("t", parameters)], true).remove(0);
    let flags = ["/strict", "/function/strict", "/toolSpec/strict"];
    let strict = flags.iter().any(|at| defined.json.pointer(at) == Some(&json!(true)));
    let told = defined.changes.iter().map(|change| change.to_string());
    let told: Vec<String> = told
        .filter_map(|told| Some(told.strip_prefix("it is not sent in strict mode: ")?.to_owned()))
        .collect();
    assert_eq!(strict, told.is_empty(), "{name}: {told:?}\n{}", defined.json);
    told.concat()
}

fn one(schema: Value) -> Value {
    json!({"type": "object", "properties": {"p": schema}, "required": ["p"], "additionalProperties": false})
}

#[test]
fn a_tool_that_strict_mode_would_cripple_is_sent_without_it() {
    let map = "a map can have no properties without a name (at /properties/p)";
    let maps = [
        json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        json!({"type": "object", "additionalProperties": true}),
        json!({"type": "object"}),
    ];
    for name in ["anthropic", "bedrock", "bedrock-invoke"] {
        for schema in maps.clone() {
            assert_eq!(not_strict(name, one(schema.clone())), map, "{name}: {schema}");
        }
        let patterns =
            json!({"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": false});
        assert_eq!(
            not_strict(name, one(patterns)),
            "`patternProperties` cannot be said (at /properties/p)",
            "{name}"
        );
        let two = json!({"allOf": [one(json!({"type": "string"})), {"type": "object", "properties": {
            "q": {"type": "string"}}}]});
        assert_eq!(
            not_strict(name, one(two)),
            "the objects of `allOf` exclude each other (at /properties/p)",
            "{name}"
        );
        let both = json!({"anyOf": [one(json!({"type": "string"})), one(json!({"type": "integer"}))]});
        assert_eq!(not_strict(name, both), "its arguments are a union", "{name}");
        let old = json!({"type": "object", "properties": {"p": {"$ref": "#/definitions/A"}}, "required": ["p"],
            "definitions": {"A": {"type": "string"}}});
        assert!(not_strict(name, old).contains("may refuse the reference"), "{name}");
        let several = json!({"allOf": [{"type": "string"}, {"type": "string", "description": "d"}]});
        assert_eq!(not_strict(name, one(several)), "", "{name}");
    }
    for name in ["openai", "openai-chat"] {
        let nameless = "the vendor refuses properties without a name (at /properties/p)";
        let reasons = [nameless, nameless, map];
        for (schema, reason) in maps.clone().into_iter().zip(reasons) {
            assert_eq!(not_strict(name, one(schema.clone())), reason, "{name}: {schema}");
        }
        let both = json!({"anyOf": [one(json!({"type": "string"})), one(json!({"type": "integer"}))]});
        assert_eq!(not_strict(name, both), "the vendor refuses `anyOf` at the root", "{name}");
        let nested = |levels: usize| (1..levels).fold(json!({"type": "string"}), |inner, _| one(inner));
        assert_eq!(not_strict(name, nested(11)), "", "{name}");
        assert_eq!(not_strict(name, nested(12)), "the vendor takes at most 10 levels", "{name}");
        let values = |count: usize| json!({"type": "string", "enum": (0..count).map(|n| n.to_string()).collect::<Vec<_>>()});
        assert_eq!(not_strict(name, one(values(1000))), "", "{name}");
        assert_eq!(
            not_strict(name, one(values(1001))),
            "the vendor takes at most 1000 values in its `enum`s",
            "{name}"
        );
        // References that lead to the same place very often are not followed without end.
        let mut bomb = one(json!({"$ref": "#/$defs/d0"}));
        for level in 0..9 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            let names: Vec<String> = (0..20).map(|n| format!("p{n}")).collect();
            let properties: Value = names.iter().map(|name| (name.clone(), next.clone())).collect();
            bomb["$defs"][format!("d{level}")] = json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false});
        }
        bomb["$defs"]["d9"] = json!({"type": "string"});
        assert_eq!(not_strict(name, bomb), "the vendor takes at most 10 levels", "{name}");
    }
    // The limit of tools and parameters is Anthropic's alone.
    let many: Vec<ToolSpec> =
        (0..30).map(|n| tool(&format!("t{n}"), tools()[0].parameters.clone())).collect();
    let strict = define(vendor("openai"), &many, true);
    assert_eq!(strict.iter().filter(|tool| tool.json["strict"] == true).count(), 30);
    let union = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    let many: Vec<ToolSpec> = (0..20).map(|n| tool(&format!("t{n}"), one(union.clone()))).collect();
    let strict = define(vendor("anthropic"), &many, true);
    assert_eq!(strict.iter().filter(|tool| tool.json["strict"] == true).count(), 16);
}

#[test]
fn what_a_vendor_reads_past_or_is_not_told_is_reported() {
    let mut look = tool(
        "files.look",
        json!({"type": "object", "properties": {
        "path": {"type": "string", "pattern": "^a"}, "how": {"oneOf": [{"const": "x"}, {"type": "null"}]}}}),
    );
    look.output_schema = Some(json!({"type": "string"}));
    let told = |name: &str| -> Vec<String> {
        define(vendor(name), &[look.clone()], false)[0]
            .changes
            .iter()
            .map(|change| change.to_string())
            .collect()
    };
    assert_eq!(told("anthropic"), ["it is called `files_look`", "the schema of its output is not sent"]);
    assert_eq!(
        told("google"),
        [
            "it is called `files_look`",
            "the schema of its output is not sent",
            "/properties/path: the vendor does not know `pattern` (the vendor may send what the tool refuses)",
            "/properties/how: `oneOf` is read as `anyOf` (the vendor may send what the tool refuses)",
            "/properties/how/oneOf/0: the vendor does not know `const` (the vendor may send what the tool refuses)",
        ]
    );
}

/// The parameters of a tool as a vendor is told them without strict mode, and what is said about that.
fn told(name: &str, parameters: Value) -> (Value, Vec<String>) {
    let defined = define(vendor(name), &[tool("t", parameters)], false).remove(0);
    let at = ["/input_schema", "/parameters", "/function/parameters", "/toolSpec/inputSchema/json"];
    let schema = at.iter().find_map(|at| defined.json.pointer(at)).unwrap().clone();
    (schema, defined.changes.iter().map(|change| change.to_string()).collect())
}

#[test]
fn a_tool_whose_schema_some_vendor_refuses_is_told_in_another_way() {
    let string = json!({"type": "string"});
    let one_of_two = json!({"type": "object", "description": "D.", "properties": {"c": string}, "required": ["c"],
        "anyOf": [
            {"properties": {"a": string, "k": {"const": 1}}, "required": ["a", "k"]},
            {"$ref": "#/$defs/B"},
        ],
        "$defs": {"B": {"properties": {"b": string, "k": {"const": 2}}, "required": ["k"]}}});
    for name in ["anthropic", "openai", "openai-chat", "bedrock", "bedrock-invoke", "llama.cpp"] {
        let (schema, changes) = told(name, one_of_two.clone());
        assert_eq!(
            schema["properties"],
            json!({"c": string, "a": string,
            "k": {"anyOf": [{"const": 1}, {"const": 2}]}, "b": string})
        );
        assert_eq!((&schema["type"], &schema["required"]), (&json!("object"), &json!(["c", "k"])), "{name}");
        assert!(["anyOf", "oneOf", "allOf"].iter().all(|key| schema.get(key).is_none()), "{name}: {schema}");
        let words = schema["description"].as_str().unwrap();
        assert!(
            words.starts_with("D.\n\nThe arguments must also follow this JSON Schema: {\"anyOf\":"),
            "{words}"
        );
        assert_eq!(
            changes,
            [
                "/: the properties of `anyOf` are joined (some values the tool takes can no longer be sent)",
                "/: `anyOf` is only described (the vendor may send what the tool refuses)",
            ],
            "{name}"
        );
        jsonschema::validator_for(&schema).unwrap();

        // What all hold together is one object.
        let all = json!({"allOf": [{"type": "object", "properties": {"a": string}, "required": ["a"]},
            {"properties": {"b": string}}]});
        let wanted = json!({"type": "object", "properties": {"a": string, "b": string}, "required": ["a"]});
        assert_eq!(told(name, all), (wanted, vec![]), "{name}");
        let closed = json!({"allOf": [{"properties": {"a": string}, "additionalProperties": false}]});
        assert_eq!(told(name, closed).1.len(), 1, "{name}");
        let not = json!({"type": "object", "not": {"required": ["a"]}});
        assert_eq!(
            told(name, not).1,
            ["/: `not` is only described (the vendor may send what the tool refuses)"]
        );
        // A schema that is a reference, or says no type.
        let reference = json!({"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": string}}}});
        let (schema, changes) = told(name, reference);
        assert_eq!((&schema["type"], &schema["properties"]["a"]), (&json!("object"), &string), "{name}");
        assert!(changes.is_empty(), "{name}");

        let odd = json!({"type": "object", "properties": {
            "any": true, "tuple": {"type": "array", "prefixItems": [string], "items": false},
            "again": {"$ref": "#"}, "more": {"type": "object", "additionalProperties": true},
        }, "$defs": {"arguments": {"type": "null"}}});
        let (schema, changes) = told(name, odd.clone());
        let properties = json!({"any": {}, "tuple": {"type": "array", "prefixItems": [string], "maxItems": 1},
            "again": {"$ref": "#/$defs/arguments_"}, "more": {"type": "object", "additionalProperties": true}});
        assert_eq!(schema["properties"], properties, "{name}");
        assert_eq!(
            schema["$defs"]["arguments_"],
            json!({"type": "object", "properties": properties}),
            "{name}"
        );
        assert!(changes.is_empty(), "{name}: {changes:?}");
        let (before, after) = (validator(&odd), validator(&schema));
        for value in [
            json!({}),
            json!({"any": 1, "tuple": ["a"], "again": {"again": {}}}),
            json!({"tuple": ["a", "b"]}),
            json!({"again": {"tuple": [1]}}),
            json!({"again": 1}),
        ] {
            assert_eq!(before.is_valid(&value), after.is_valid(&value), "{name}: {value}");
        }
        let never = json!({"type": "object", "properties": {"no": false}});
        let said = "/properties/no: `false` is left out (the vendor may send what the tool refuses)";
        assert_eq!(told(name, never).1, [said], "{name}");
    }
    // Gemini takes them all.
    let defined = define(vendor("google"), &[tool("t", one_of_two.clone())], false).remove(0);
    assert_eq!(defined.json["parametersJsonSchema"], one_of_two);
}

#[test]
fn parameters_whose_names_claude_refuses_have_others_on_the_way() {
    use toolwright_core::{AssistantMessage, Message, ToolCall};
    let string = json!({"type": "string"});
    let odd = json!({"type": "object", "properties": {"weird name!": string, "weird_name_": string, "größe": string},
        "required": ["weird name!"]});
    let arguments = json!({"weird name!": "a", "größe": "b"});
    for (name, schema_at, input_at) in [
        ("anthropic", "/tools/0/input_schema", "/messages/1/content/0/input"),
        ("bedrock-invoke", "/tools/0/input_schema", "/messages/1/content/0/input"),
        ("bedrock", "/toolConfig/tools/0/toolSpec/inputSchema/json", "/messages/1/content/0/toolUse/input"),
    ] {
        let call = Message::Assistant(AssistantMessage::calls([ToolCall::new("c", "t", arguments.clone())]));
        let mut conversation = Conversation::of([Message::user("x"), call]);
        conversation.tools.push(tool("t", odd.clone()));
        let body = vendor(name).wire.encode(target(name), &conversation.request(), Delivery::Whole).unwrap();
        let schema = body.pointer(schema_at).unwrap();
        let names: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let fits = regex(r"^[a-zA-Z0-9_.-]{1,64}$");
        assert!(names.len() == 3 && names.iter().all(|name| fits.is_valid(&json!(name))), "{names:?}");
        assert_eq!(schema["required"], json!([names[0]]));
        let sent = body.pointer(input_at).unwrap();
        assert_eq!(*sent, json!({names[0]: "a", "gr__e": "b"}), "{name}");
        // What comes back has the tool's own names.
        let mut decoder = vendor(name).wire.decoder(target(name), &conversation.request());
        let reply = match name {
            "bedrock" => json!({"output": {"message": {"role": "assistant", "content": [
                {"toolUse": {"toolUseId": "c", "name": "t", "input": sent}}]}}, "stopReason": "tool_use"}),
            _ => json!({"type": "message", "role": "assistant", "content": [
                {"type": "tool_use", "id": "c", "name": "t", "input": sent}], "stop_reason": "tool_use"}),
        };
        decoder.body(reply.to_string().as_bytes(), &mut |_| {}).unwrap();
        assert_eq!(decoder.finish().unwrap().message.tool_calls[0].arguments, arguments, "{name}");
        let changes = define(vendor(name), &conversation.tools, false).remove(0).changes;
        assert_eq!(changes.len(), 2, "{changes:?}");
    }
    let (schema, changes) = told("openai", odd.clone());
    assert_eq!((schema, changes.len()), (odd, 0));
}

/// A validator of names.
fn regex(pattern: &str) -> jsonschema::Validator {
    validator(&json!({"pattern": pattern}))
}

#[test]
fn an_answer_that_follows_a_schema_is_asked_for_in_each_vendors_way() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
    let mut conversation = Conversation::of([toolwright_core::Message::user("x")]);
    conversation.options.response_schema = Some(schema.clone());
    let mut asked = |name: &str, pointer: &str| {
        conversation.options.max_tokens = Some(5);
        let body = vendor(name).wire.encode(target(name), &conversation.request(), Delivery::Whole).unwrap();
        body.pointer(pointer).cloned().unwrap_or_default()
    };
    let named = json!({"name": "answer", "schema": schema, "strict": true});
    let format = json!({"type": "json_schema", "schema": schema});
    assert_eq!(asked("anthropic", "/output_config/format"), format);
    assert_eq!(asked("bedrock-invoke", "/output_config/format"), format);
    assert_eq!(
        asked("openai-chat", "/response_format"),
        json!({"type": "json_schema", "json_schema": named})
    );
    assert_eq!(asked("llama.cpp", "/response_format/json_schema/schema"), schema);
    assert_eq!(
        asked("openai", "/text/format"),
        json!({"type": "json_schema", "name": "answer", "schema": schema, "strict": true})
    );
    let config =
        json!({"maxOutputTokens": 5, "responseMimeType": "application/json", "responseJsonSchema": schema});
    assert_eq!(asked("google", "/generationConfig"), config);
    let text = asked("bedrock", "/outputConfig/textFormat/structure/jsonSchema/schema");
    assert_eq!(serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap(), schema);
    assert_eq!(asked("deepseek", "/response_format"), json!({"type": "json_object"}));
    assert!(asked("deepseek", "/messages/0/content").as_str().unwrap().contains("JSON Schema"));

    conversation.options.response_schema =
        Some(json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
    let chat = vendor("openai-chat")
        .wire
        .encode(target("openai-chat"), &conversation.request(), Delivery::Whole)
        .unwrap();
    assert_eq!(
        chat.pointer("/response_format/json_schema/strict"),
        Some(&json!(false)),
        "an optional property stays one"
    );
    conversation.options.response_schema = Some(one(json!({"type": "object"})));
    let chat = vendor("openai-chat")
        .wire
        .encode(target("openai-chat"), &conversation.request(), Delivery::Whole)
        .unwrap();
    let sent = json!({"name": "answer", "schema": one(json!({"type": "object"})), "strict": false});
    assert_eq!(chat.pointer("/response_format/json_schema"), Some(&sent), "a map stays one");
    conversation.options.response_schema = Some(json!({"properties": {}}));
    let error = vendor("anthropic")
        .wire
        .encode(target("anthropic"), &conversation.request(), Delivery::Whole)
        .unwrap_err();
    assert!(error.to_string().starts_with("the response schema cannot be sent: "), "{error}");
}

/// A conversation that grows by a turn with a call, its answer, and a remark of the user.
fn grown(turns: usize) -> Conversation {
    use toolwright_core::{AssistantMessage, Message, ToolCall, ToolError, ToolResult};
    let mut messages = vec![Message::system("Be brief."), Message::user("go")];
    for turn in 0..turns {
        let call = ToolCall::new(format!("c{turn}"), "plain", json!({"n": turn}));
        let result = ToolResult::failed(&call, ToolError::new("no").info());
        messages.push(Message::Assistant(AssistantMessage::calls([call])));
        messages.push(Message::Tool(result));
    }
    Conversation { messages, tools: tools(), ..Conversation::default() }
}

/// The same JSON without marks for caches.
fn unmarked(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| *key != "cache_control")
            .map(|(key, value)| (key.clone(), unmarked(value)))
            .collect(),
        Value::Array(list) => {
            list.iter().filter(|item| item.get("cachePoint").is_none()).map(unmarked).collect()
        }
        other => other.clone(),
    }
}

#[test]
fn every_request_starts_with_the_one_before_it() {
    for (name, _) in FORMATS {
        let encode = |turns: usize| {
            let conversation = grown(turns);
            vendor(name).wire.encode(target(name), &conversation.request(), Delivery::Whole).unwrap()
        };
        for turns in 0..4 {
            let (before, after) = (unmarked(&encode(turns)), unmarked(&encode(turns + 1)));
            assert_eq!(encode(turns).to_string(), encode(turns).to_string(), "the same twice");
            for (key, value) in before.as_object().unwrap() {
                match (key.as_str(), value.as_array(), after[key].as_array()) {
                    ("messages" | "input" | "contents", Some(before), Some(after)) => {
                        assert_eq!(Some(before.as_slice()), after.get(..before.len()), "{name} {key}");
                    }
                    _ => assert_eq!(value, &after[key], "{name} {key}"),
                }
            }
        }
    }
}

#[test]
fn vendors_that_want_to_be_told_are_told_what_to_keep() {
    let marks = |name: &str, model: &'static str, cache: Option<bool>, turns: usize| {
        let mut conversation = grown(turns);
        conversation.options.cache = cache;
        let target = toolwright_models::wire::ModelTarget { vendor: vendor(name), model };
        let body =
            vendor(name).wire.encode(target, &conversation.request(), Delivery::Whole).unwrap().to_string();
        body.matches("cache_control").count() + body.matches("cachePoint").count()
    };
    // Instructions, and the user's last two turns; never more than the four that are allowed.
    assert_eq!(marks("anthropic", "m", None, 0), 2);
    assert_eq!(marks("anthropic", "m", None, 5), 3);
    assert_eq!(marks("anthropic", "m", Some(false), 5), 0);
    assert_eq!(marks("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", None, 5), 3);
    assert_eq!(marks("bedrock", "anthropic.claude-v2:1", None, 5), 0);
    assert_eq!(marks("bedrock", "meta.llama3", Some(true), 5), 0);
    assert_eq!(marks("bedrock-invoke", "anthropic.claude-opus-4-6-v1", None, 5), 3);
    assert_eq!(marks("anthropic-compatible", "m", None, 5), 0);
    assert_eq!(marks("anthropic-compatible", "m", Some(true), 5), 3);
    for name in ["openai", "openai-chat", "google"] {
        assert_eq!(marks(name, "m", Some(true), 5), 0);
    }
    let mut plain = Conversation::of([toolwright_core::Message::user("x")]);
    plain.tool_choice = ToolChoice::None;
    let body =
        vendor("anthropic").wire.encode(target("anthropic"), &plain.request(), Delivery::Whole).unwrap();
    assert!(!body.to_string().contains("cache_control"), "a single question is not worth keeping");
}
