//! Answers that are not what they should be, and strange ones that are.

use crate::error::{Failure, ResponseFault};
use crate::http::SandboxId;
use crate::http::answer::{JsonAnswer, is_refusal};
use crate::http::fields::{is_truthy, number, string};

fn fault(bytes: &[u8]) -> Option<ResponseFault> {
    match JsonAnswer::read(bytes.to_vec()) {
        Ok(_) => None,
        Err(Failure::Response(fault)) => Some(fault),
        Err(other) => panic!("{other:?}"),
    }
}

fn success(data: &str) -> JsonAnswer {
    let text = format!(r#"{{"status":"success","data":{data}}}"#);
    JsonAnswer::read(text.into_bytes()).expect("an answer")
}

#[test]
fn what_is_no_json_object_is_invalid_json() {
    for text in [
        "",
        " ",
        "null",
        "true",
        "0",
        "1e999",
        "\"x\"",
        "[]",
        "[{}]",
        "{",
        "{\"a\":1",
        "{}x",
        "{}{}",
        "<html>",
        "{'a':1}",
        "{a:1}",
        "{\"a\":1,}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":+1}",
        "{\"a\":NaN}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\n\"}",
        "{\"a\n\":1}",
        "{\"\\x\":1}",
        "{\"a\":\"\u{1}\"}",
        "\u{feff}\u{feff}{}",
        "{}\0",
        "\u{a0}{}",
        "{\"a\":tru}",
        "{\"a\":1 2}",
        "{,}",
        "{\"a\"}",
        "//\n{}",
    ] {
        assert_eq!(
            fault(text.as_bytes()),
            Some(ResponseFault::Json),
            "{text:?}"
        );
    }
}

#[test]
fn an_envelope_that_is_no_success_is_unsuccessful() {
    for text in [
        "{}",
        r#"{"data":{}}"#,
        r#"{"status":"fail","data":{}}"#,
        r#"{"status":"error","message":"x"}"#,
        r#"{"status":"Success","data":{}}"#,
        r#"{"status":"success ","data":{}}"#,
        r#"{"status":["success"],"data":{}}"#,
        r#"{"status":true,"data":{}}"#,
        r#"{"status":null,"data":{}}"#,
        r#"{"status":"success","data":{},"status":"fail"}"#,
        r#"{"Status":"success","data":{}}"#,
        r#"{"status\u0000":"success","data":{}}"#,
        r#"{"status":"success\ud800","data":{}}"#,
    ] {
        assert_eq!(
            fault(text.as_bytes()),
            Some(ResponseFault::Unsuccessful),
            "{text}"
        );
    }
}

#[test]
fn data_that_is_no_object_is_an_invalid_response() {
    for data in [
        "null",
        "[]",
        "[{}]",
        "\"{}\"",
        "1",
        "true",
        "{},\"data\":null",
    ] {
        let text = format!(r#"{{"status":"success","data":{data}}}"#);
        assert_eq!(fault(text.as_bytes()), Some(ResponseFault::Data), "{text}");
    }
    assert_eq!(fault(br#"{"status":"success"}"#), Some(ResponseFault::Data));
}

#[test]
fn everything_json_parse_takes_is_taken() {
    for text in [
        r#"{"status":"success","data":{}}"#,
        " \t\r\n{ \"status\" : \"success\" , \"data\" : { } } \n",
        "\u{feff}{\"status\":\"success\",\"data\":{}}",
        r#"{"status":"\u0073uccess","data":{}}"#,
        r#"{"\u0073tatus":"success","data":{}}"#,
        r#"{"status":"fail","data":[],"status":"success","data":{}}"#,
        r#"{"status":"success","data":{"a":"\ud800","b":"\udc00\ud800x"}}"#,
        r#"{"status":"success","data":{"\ud800":1,"\udfff":2}}"#,
        r#"{"\ud800":1,"status":"success","data":{}}"#,
        r#"{"status":"success","data":{"n":1e999,"m":-1E-999,"o":123456789012345678901234567890}}"#,
        r#"{"status":"success","data":{},"x":1e99999}"#,
        r#"{"status":"success","data":{"n":-0,"e":1e+5}}"#,
        r#"{"status":"success","data":{"__proto__":1,"constructor":2,"":3}}"#,
        "{\"status\":\"success\",\"data\":{\"a\":\"\u{7f}\u{2028}\u{2029}\"}}",
    ] {
        assert_eq!(fault(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn invalid_utf_8_is_replaced() {
    let answer =
        JsonAnswer::read(b"{\"status\":\"success\",\"data\":{\"a\":\"\xff\xf0\x9f\"}}".into())
            .expect("an answer");
    assert_eq!(answer.data(), "{\"a\":\"\u{fffd}\u{fffd}\"}");
    assert_eq!(
        fault(b"{\"status\":\"success\",\"data\":{}}\xff"),
        Some(ResponseFault::Json)
    );
}

#[test]
fn nesting_of_a_million_uses_no_stack() {
    let deep = |open: &str, close: &str| {
        let mut data = String::from("{\"a\":");
        for _ in 0..1_000_000 {
            data.push_str(open);
        }
        data.push('1');
        for _ in 0..1_000_000 {
            data.push_str(close);
        }
        data.push('}');
        data
    };
    success(&deep("[", "]"));
    success(&deep("{\"a\":", "}"));
    let text = format!(r#"{{"status":"success","data":{}}}"#, deep("[", ""));
    assert_eq!(fault(text.as_bytes()), Some(ResponseFault::Json));
}

#[test]
fn fields_are_read_as_javascript_would() {
    let answer = success(
        r#"{"id":"old","\u0069d":"new","s":"\ud83d\ude00\n","lone":"\ud800","n":-1.5e3,
            "big":1e999,"o":{"id":"inner"}}"#,
    );
    let [id, s, lone, n, big, o, none] =
        answer.fields(["id", "s", "lone", "n", "big", "o", "none"]);
    assert_eq!(id.and_then(string).as_deref(), Some("new"));
    assert_eq!(s.and_then(string).as_deref(), Some("\u{1f600}\n"));
    assert!(
        lone.and_then(string)
            .is_some_and(|text| text.starts_with('\u{fffd}'))
    );
    assert_eq!(n.and_then(number), Some(-1500.0));
    assert_eq!(big.and_then(number), Some(f64::INFINITY));
    assert!(o.and_then(string).is_none() && o.and_then(number).is_none());
    assert!(none.is_none());
}

#[test]
fn truth_is_javascripts() {
    let answer = success(
        r#"{"a":null,"b":false,"c":"","d":0,"e":-0.0,"f":"0","g":[],"h":{},"i":1e-9,"j":true}"#,
    );
    let truths = answer
        .fields(["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"])
        .map(|value| is_truthy(value.expect("a field")));
    assert_eq!(
        truths,
        [
            false, false, false, false, false, true, true, true, true, true
        ]
    );
}

#[test]
fn only_a_plain_no_is_a_refusal() {
    for text in [
        r#"{"status":"fail"}"#,
        r#"{"status":"error","message":"x"}"#,
        r#"{"status":""}"#,
    ] {
        assert!(is_refusal(text.as_bytes()), "{text}");
    }
    for text in [
        "",
        "{}",
        "null",
        "ok",
        r#"{"status":"success"}"#,
        r#"{"status":202}"#,
        "[1]",
    ] {
        assert!(!is_refusal(text.as_bytes()), "{text}");
    }
}

#[test]
fn ids_are_200_letters_digits_underscores_and_hyphens() {
    for id in ["a", "sb-01J", "sb_01j", "-", &"x".repeat(200)] {
        assert_eq!(SandboxId::parse(id).expect("an id").as_str(), id);
    }
    for id in [
        "",
        " a",
        "a b",
        "a/b",
        "..",
        ".",
        "a\n",
        "a%2f",
        "\u{e9}",
        "a?b",
        &"x".repeat(201),
    ] {
        assert_eq!(
            SandboxId::parse(id),
            Err(Failure::Response(ResponseFault::Id)),
            "{id:?}"
        );
    }
}

#[test]
fn nothing_of_an_answer_is_printed() {
    let answer = success(r#"{"secret":"hunter2"}"#);
    assert!(!format!("{answer:?}").contains("hunter2"));
}
