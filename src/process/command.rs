//! What a caller may ask for, and the script for the sandbox's Bash that it becomes.
//!
//! Everything of the caller's is single-quoted, inside which Bash reads nothing but the closing quote.
//! The variables go through `env`, since the provider only overrides those that were declared when the
//! sandbox was created.

use bytes::Bytes;
use uuid::Uuid;

use super::WORKSPACE;
use crate::config::Raw;
use crate::error::{CommandFault, Failure};
use crate::text::Text;

/// The longest script that travels as an argument, in bytes. Linux takes 128 KiB.
const LONGEST_ARGUMENT: usize = 96 * 1024;

/// Waits until the command's standard input is closed, which happens once its output is attached. Bash's own
/// `read` would end after TMOUT, which images set.
const GATE: &str = "/bin/cat > /dev/null";

/// What the caller gave, as it came.
#[derive(Debug, Default)]
pub struct Asked {
    pub command: Raw<Text>,
    /// `None` for an element that is no string.
    pub args: Raw<Vec<Option<Text>>>,
    /// Names and values; `None` for a value that is no string.
    pub env: Raw<Vec<(Text, Option<Text>)>>,
    pub cwd: Raw<Text>,
    pub stdin: Raw<Text>,
}

/// A command that can be run.
pub struct Command {
    program: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    cwd: String,
    stdin: Bytes,
}

impl Command {
    /// Checks what was asked for, in the specification's order. Lone surrogates are replaced: no
    /// process can be given one.
    pub fn parse(asked: &Asked) -> Result<Self, Failure> {
        let command = match &asked.command {
            Raw::Given(command) if !command.is_empty() => command,
            _ => return Err(Failure::Command(CommandFault::Missing)),
        };
        let env = given(&asked.env, CommandFault::Environment)?;
        let env = all(
            env.into_iter().flatten().map(variable),
            CommandFault::Environment,
        )?;
        let args = given(&asked.args, CommandFault::Arguments)?;
        let args = args.into_iter().flatten().map(Option::as_ref);
        let args = all(args, CommandFault::Arguments)?;
        let cwd = given(&asked.cwd, CommandFault::Folder)?;
        let stdin = given(&asked.stdin, CommandFault::Input)?;
        let values = env.iter().map(|(_, value)| *value);
        let mut values = values
            .chain([command])
            .chain(args.iter().copied())
            .chain(cwd);
        if values.any(|value| value.contains_any(&['\0'])) {
            return Err(Failure::Command(CommandFault::Nul));
        }
        Ok(Self {
            program: command.to_well_formed(),
            args: args.into_iter().map(Text::to_well_formed).collect(),
            env: env
                .into_iter()
                .map(|(name, value)| (name.to_well_formed(), value.to_well_formed()))
                .collect(),
            cwd: folder(cwd.map(Text::to_well_formed).unwrap_or_default()),
            stdin: stdin.map(Text::to_well_formed).unwrap_or_default().into(),
        })
    }

    /// The absolute folder that it runs in.
    pub fn cwd(&self) -> &str {
        &self.cwd
    }

    /// Brings it into the form in which it travels.
    pub fn launch(&self) -> Launch {
        let input = (!self.stdin.is_empty()).then(|| Upload {
            path: scratch_path("stdin"),
            content: self.stdin.clone(),
        });
        let script = self.script(input.as_ref().map(|input| input.path.as_str()));
        let mut launch = Launch {
            script,
            uploads: input.into_iter().collect(),
        };
        if launch.script.len() > LONGEST_ARGUMENT {
            let path = scratch_path("script");
            let quoted = quote(&path);
            // Read whole before any of it is run.
            let whole = format!("rm -f -- {quoted}\n{}", launch.script);
            launch.script = format!(". {quoted}");
            launch.uploads.push(Upload {
                path,
                content: whole.into(),
            });
        }
        launch
    }

    fn script(&self, input: Option<&str>) -> String {
        let mut lines = vec![GATE.to_owned()];
        if let Some(path) = input.map(quote) {
            // The command reads it through a descriptor, so nothing of it outlives the command.
            lines.push(format!("exec < {path} && rm -f -- {path} || exit"));
        }
        lines.push(format!("cd -- {} || exit", quote(&self.cwd)));
        let mut words = vec!["exec env --".to_owned()];
        let assigned = self.env.iter();
        words.extend(assigned.map(|(name, value)| quote(&format!("{name}={value}"))));
        if self.program.contains('=') || self.program.starts_with('-') {
            // `env` would take such a name for a variable, or for an option of its own. `nice` does not,
            // and changes nothing by itself; the caller's PATH need not lead to it.
            words.push("\"$(type -P nice)\" -n 0 --".to_owned());
        }
        words.push(quote(&self.program));
        words.extend(self.args.iter().map(|argument| quote(argument)));
        lines.push(words.join(" "));
        lines.join("\n")
    }
}

/// Not what it says: all of it is the caller's.
impl std::fmt::Debug for Command {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Command").finish_non_exhaustive()
    }
}

/// A command in the form in which it travels.
pub struct Launch {
    /// For `bash -lc`.
    pub script: String,
    /// Files that have to be there before it runs; the script removes them.
    pub uploads: Vec<Upload>,
}

/// A file in the sandbox that only one command needs.
pub struct Upload {
    pub path: String,
    pub content: Bytes,
}

/// A path that nobody else has.
fn scratch_path(what: &str) -> String {
    format!("/tmp/createos-lease-{what}-{}", Uuid::new_v4().hyphenated())
}

/// A field that may be absent.
fn given<T>(field: &Raw<T>, fault: CommandFault) -> Result<Option<&T>, Failure> {
    match field {
        Raw::Absent => Ok(None),
        Raw::Given(value) => Ok(Some(value)),
        Raw::Other => Err(Failure::Command(fault)),
    }
}

/// All elements, if each of them is one.
fn all<T>(
    elements: impl Iterator<Item = Option<T>>,
    fault: CommandFault,
) -> Result<Vec<T>, Failure> {
    let all: Option<Vec<T>> = elements.collect();
    all.ok_or(Failure::Command(fault))
}

/// A variable whose name and value can be one.
fn variable((name, value): &(Text, Option<Text>)) -> Option<(&Text, &Text)> {
    let mut units = name
        .units()
        .iter()
        .map(|unit| u8::try_from(*unit).unwrap_or(0));
    let begins = units
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
    let goes_on = units.all(|unit| unit.is_ascii_alphanumeric() || unit == b'_');
    (begins && goes_on).then_some(name).zip(value.as_ref())
}

/// The folder, seen from the workspace.
fn folder(cwd: String) -> String {
    match cwd.as_str() {
        "" => WORKSPACE.to_owned(),
        path if path.starts_with('/') => cwd,
        path => format!("{WORKSPACE}/{path}"),
    }
}

/// One word for Bash, whatever the text holds but NUL.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
