//! What may be asked for, and the script that it becomes.

use super::command::{Asked, Command};
use crate::config::Raw;
use crate::error::{CommandFault, Failure};
use crate::text::Text;

fn text(text: &str) -> Raw<Text> {
    Raw::Given(Text::from(text))
}

fn texts(texts: &[&str]) -> Raw<Vec<Option<Text>>> {
    Raw::Given(texts.iter().map(|text| Some(Text::from(*text))).collect())
}

fn pairs(pairs: &[(&str, &str)]) -> Raw<Vec<(Text, Option<Text>)>> {
    let pair = |(name, value): &(&str, &str)| (Text::from(*name), Some(Text::from(*value)));
    Raw::Given(pairs.iter().map(pair).collect())
}

fn asked(command: &str) -> Asked {
    Asked {
        command: text(command),
        ..Asked::default()
    }
}

fn script(asked: &Asked) -> String {
    Command::parse(asked).expect("a command").launch().script
}

#[test]
fn a_plain_command_runs_in_the_workspace_once_its_input_is_closed() {
    let expected = "/bin/cat > /dev/null\n\
                    cd -- '/paperclip-workspace' || exit\n\
                    exec env -- 'ls'";
    assert_eq!(script(&asked("ls")), expected);
}

#[test]
fn everything_of_the_callers_is_quoted() {
    let script = script(&Asked {
        command: text("it's"),
        args: texts(&["", "$(x)\n", "'"]),
        env: pairs(&[("A_1", "b'c"), ("_", "")]),
        cwd: text("a b/'"),
        stdin: Raw::Absent,
    });
    let expected = "/bin/cat > /dev/null\n\
                    cd -- '/paperclip-workspace/a b/'\\''' || exit\n\
                    exec env -- 'A_1=b'\\''c' '_=' 'it'\\''s' '' '$(x)\n' ''\\'''";
    assert_eq!(script, expected);
}

#[test]
fn a_name_that_env_would_take_for_something_else_goes_through_nice() {
    for name in ["a=b", "-i", "-", "--"] {
        let script = script(&asked(name));
        let end = format!("exec env -- \"$(type -P nice)\" -n 0 -- '{name}'");
        assert!(script.ends_with(&end), "{script}");
    }
}

#[test]
fn input_travels_in_a_file_of_its_own() {
    let mut asked = asked("cat");
    asked.stdin = text("in\u{e9}");
    let launch = Command::parse(&asked).expect("a command").launch();
    let [input] = launch.uploads.as_slice() else {
        panic!("one file");
    };
    assert!(input.path.starts_with("/tmp/createos-lease-stdin-"));
    assert_eq!(input.content, "in\u{e9}".as_bytes());
    let line = format!("exec < '{0}' && rm -f -- '{0}' || exit\n", input.path);
    assert!(launch.script.contains(&line), "{}", launch.script);
    asked.stdin = text("");
    assert!(
        Command::parse(&asked)
            .expect("a command")
            .launch()
            .uploads
            .is_empty()
    );
}

#[test]
fn a_script_that_is_no_argument_any_more_travels_in_a_file() {
    let long = "x".repeat(50_000);
    let mut asked = asked("echo");
    asked.args = texts(&[&long, &long]);
    let launch = Command::parse(&asked).expect("a command").launch();
    let [file] = launch.uploads.as_slice() else {
        panic!("one file");
    };
    assert_eq!(launch.script, format!(". '{}'", file.path));
    let begins = format!("rm -f -- '{}'\n/bin/cat >", file.path);
    assert!(file.content.starts_with(begins.as_bytes()));
    assert!(
        file.content
            .ends_with(format!("'{long}' '{long}'").as_bytes())
    );
}

#[test]
fn checks_come_in_the_specifications_order() {
    let name = |name| Raw::Given(vec![(Text::from(name), Some(Text::from("")))]);
    let mut wrong = Asked {
        command: Raw::Other,
        args: Raw::Other,
        env: Raw::Other,
        cwd: Raw::Other,
        stdin: Raw::Other,
    };
    let fault = |asked: &Asked| match Command::parse(asked) {
        Err(Failure::Command(fault)) => fault,
        other => panic!("{other:?}"),
    };
    for command in [Raw::Other, Raw::Absent, text("")] {
        wrong.command = command;
        assert_eq!(fault(&wrong), CommandFault::Missing);
    }
    wrong.command = text("a\0");
    assert_eq!(fault(&wrong), CommandFault::Environment);
    for bad in ["", "1A", "A-B", "A ", "\u{e9}", "A\0", "A="] {
        wrong.env = name(bad);
        assert_eq!(fault(&wrong), CommandFault::Environment, "{bad:?}");
    }
    wrong.env = Raw::Given(vec![(Text::from("A"), None)]);
    assert_eq!(fault(&wrong), CommandFault::Environment);
    wrong.env = pairs(&[("A", "\0")]);
    assert_eq!(fault(&wrong), CommandFault::Arguments);
    wrong.args = Raw::Given(vec![None]);
    assert_eq!(fault(&wrong), CommandFault::Arguments);
    wrong.args = texts(&["\0"]);
    assert_eq!(fault(&wrong), CommandFault::Folder);
    wrong.cwd = text("\0");
    assert_eq!(fault(&wrong), CommandFault::Input);
    // Of the input it is the content that travels, whatever it holds.
    wrong.stdin = text("\0");
    for mend in [
        |asked: &mut Asked| asked.env = Raw::Absent,
        |asked: &mut Asked| asked.command = text("a"),
        |asked: &mut Asked| asked.args = texts(&["a"]),
        |asked: &mut Asked| asked.cwd = text("a"),
    ] {
        assert_eq!(fault(&wrong), CommandFault::Nul);
        mend(&mut wrong);
    }
    assert!(Command::parse(&wrong).is_ok());
}
