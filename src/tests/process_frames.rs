//! Lines of a process's output stream: what each tells, and what is none.

use super::frames::Frame;
use super::{Stream, plain};
use crate::error::OutputFault;
use crate::http::Exit;

fn data(line: &str) -> Result<(u64, Stream, String), OutputFault> {
    match Frame::parse(line.as_bytes())? {
        Frame::Data(data) => {
            let (stream, base64) = data.content()?;
            Ok((data.sequence, stream, base64.to_owned()))
        }
        other => panic!("{other:?} is no data"),
    }
}

fn fault(line: &str) -> OutputFault {
    data(line).expect_err(line)
}

#[test]
fn data_is_read_whatever_the_order_of_its_fields() {
    let expected = Ok((3, Stream::Stderr, "aGk=".to_owned()));
    for line in [
        r#"{"type":"data","seq":3,"stream":"stderr","data_base64":"aGk="}"#,
        r#"{"data_base64":"aGk=","stream":"stderr","seq":3,"type":"data"}"#,
        r#" { "type" : "data" , "seq" : 3.0 , "stream":"stderr","data_base64":"aGk=" } "#,
        r#"{"type":"data","seq":3e0,"stream":"\u0073tderr","data_base64":"aGk\u003d","at":{"a":[1]}}"#,
        r#"{"type":"exit","type":"data","seq":9,"seq":3,"stream":"stderr","data_base64":"aGk="}"#,
    ] {
        assert_eq!(data(line), expected, "{line}");
    }
}

#[test]
fn what_is_no_object_is_an_invalid_frame() {
    for line in [
        "",
        "null",
        "1",
        "[]",
        "\"data\"",
        "{",
        "{}x",
        "{\"type\":}",
        "{\"type\":\"heartbeat\"",
        "{\"type\":\"heartbeat\"}{}",
        "{\"type\":\"heart\nbeat\"}",
        "{'type':'heartbeat'}",
    ] {
        let parsed = Frame::parse(line.as_bytes());
        assert_eq!(parsed, Err(OutputFault::Frame), "{line}");
    }
}

#[test]
fn what_a_parser_of_javascripts_takes_is_taken() {
    for line in [
        "\u{feff}{\"type\":\"heartbeat\"}",
        r#"{"type":"heartbeat","at":1e999}"#,
        r#"{"type":"heartbeat","\ud800":1}"#,
        r#"{"type":"heartbeat","seq":1e999}"#,
        r#"{"type":"heartbeat","error":"\ud800"}"#,
    ] {
        let parsed = Frame::parse(line.as_bytes());
        assert_eq!(parsed, Ok(Frame::Heartbeat), "{line}");
    }
    let not_utf8 = b"{\"type\":\"heartbeat\",\"error\":\"\xff\"}";
    assert_eq!(Frame::parse(not_utf8), Ok(Frame::Heartbeat));
    let endless = br#"{"type":"exit","exit_code":1e999}"#;
    assert_eq!(Frame::parse(endless), Err(OutputFault::StatusMissing));
}

#[test]
fn what_is_no_known_kind_is_an_unknown_event() {
    for line in [
        "{}",
        r#"{"type":null}"#,
        r#"{"type":1}"#,
        r#"{"type":"Data"}"#,
        r#"{"type":"x"}"#,
    ] {
        assert_eq!(fault(line), OutputFault::Event, "{line}");
    }
}

#[test]
fn a_sequence_is_an_integer_from_one() {
    for sequence in [
        "0",
        "-1",
        "1.5",
        "\"1\"",
        "null",
        "true",
        "[1]",
        "{}",
        "9007199254740992",
    ] {
        let line =
            format!(r#"{{"type":"data","seq":{sequence},"stream":"stdout","data_base64":""}}"#);
        assert_eq!(fault(&line), OutputFault::Sequence, "{line}");
    }
    assert_eq!(fault(r#"{"type":"data"}"#), OutputFault::Sequence);
}

#[test]
fn content_needs_a_stream_of_a_pipe_and_a_text() {
    for (fields, expected) in [
        (r#""stream":"stdin","data_base64":"""#, OutputFault::Data),
        (r#""data_base64":"""#, OutputFault::Data),
        (r#""stream":1,"data_base64":"""#, OutputFault::Data),
        (r#""stream":"stdout""#, OutputFault::Data),
        (r#""stream":"stdout","data_base64":null"#, OutputFault::Data),
        (r#""stream":"pty","data_base64":"""#, OutputFault::Pty),
    ] {
        let line = format!(r#"{{"type":"data","seq":1,{fields}}}"#);
        assert_eq!(fault(&line), expected, "{line}");
    }
}

#[test]
fn an_exit_has_a_code_or_a_signal() {
    let exit = |code: Option<f64>, signal: Option<&str>| {
        Ok(Frame::Exit(Exit {
            code,
            signal: signal.map(str::to_owned),
        }))
    };
    for (fields, expected) in [
        (r#","exit_code":0"#, exit(Some(0.0), None)),
        (r#","exit_code":-1"#, exit(Some(-1.0), None)),
        (r#","signal":"SIGKILL""#, exit(None, Some("SIGKILL"))),
        (
            r#","exit_code":null,"signal":"SIGTERM""#,
            exit(None, Some("SIGTERM")),
        ),
        (
            r#","exit_code":137,"signal":"SIGKILL""#,
            exit(Some(137.0), Some("SIGKILL")),
        ),
        ("", Err(OutputFault::StatusMissing)),
        (
            r#","exit_code":null,"signal":null"#,
            Err(OutputFault::StatusMissing),
        ),
        (r#","exit_code":"0""#, Err(OutputFault::StatusMissing)),
        (r#","exit_code":0.5"#, Err(OutputFault::StatusMissing)),
        (r#","signal":"""#, Err(OutputFault::StatusMissing)),
    ] {
        let line = format!(r#"{{"type":"exit"{fields}}}"#);
        assert_eq!(Frame::parse(line.as_bytes()), expected, "{line}");
    }
}

#[test]
fn an_error_is_a_loss_or_another() {
    for (error, expected) in [
        (r#","error":"output_offset_expired""#, OutputFault::Evicted),
        (
            r#","error":"output offset expired","oldest_available_seq":3"#,
            OutputFault::Evicted,
        ),
        (r#","error":"internal""#, OutputFault::Reported),
        (r#","error":null"#, OutputFault::Reported),
        ("", OutputFault::Reported),
    ] {
        let line = format!(r#"{{"type":"error"{error}}}"#);
        assert_eq!(Frame::parse(line.as_bytes()), Err(expected), "{line}");
    }
}

#[test]
fn a_plain_line_is_read_as_json_would_read_it() {
    let plain_ones = [
        r#"{"type":"data","seq":1,"stream":"stdout","data_base64":""}"#,
        r#"{"type":"data","seq":  120,"stream":"stderr","data_base64":"aGk="}"#,
        r#"{"type":"data","seq":999999999999999,"stream":"stdout","data_base64":"*"}"#,
    ];
    for line in plain_ones {
        let (sequence, stream, base64) = plain::data(line.as_bytes()).expect(line);
        let base64 = str::from_utf8(base64).expect("ASCII").to_owned();
        assert_eq!(data(line), Ok((sequence, stream, base64)), "{line}");
    }
    for line in [
        "",
        r#"{"type":"data"}"#,
        r#"{"type":"data","seq":0,"stream":"stdout","data_base64":""}"#,
        r#"{"type":"data","seq":01,"stream":"stdout","data_base64":""}"#,
        r#"{"type":"data","seq":,"stream":"stdout","data_base64":""}"#,
        r#"{"type":"data","seq":1.5,"stream":"stdout","data_base64":""}"#,
        r#"{"type":"data","seq":1000000000000000,"stream":"stdout","data_base64":""}"#,
        r#"{"type":"data","seq":1,"stream":"stdin","data_base64":""}"#,
        r#"{"type":"data","seq":1,"stream":"st"#,
        r#"{"type":"data","seq":1,"stream":"stdout","data_base64":"}"#,
        r#"{"type":"data","seq":1,"stream":"stdout","data_base64":"aGk"#,
        r#"{"type":"data","stream":"stdout","seq":1,"data_base64":""}"#,
    ] {
        assert_eq!(plain::data(line.as_bytes()), None, "{line}");
    }
}
