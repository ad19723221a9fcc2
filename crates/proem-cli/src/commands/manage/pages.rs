//! `proem completions` and `proem man`: generates both from the definition of the command line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, CommandFactory, ValueHint};
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::terminal::print_raw;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = INSTALLATION)]
pub(crate) struct CompletionsArguments {
    /// Shell to complete for
    shell: Shell,
}

/// The places that shells load completions from.
const INSTALLATION: &str = "\
Installation:
  proem completions bash > ~/.local/share/bash-completion/completions/proem
  proem completions zsh > ~/.zfunc/_proem   (a directory of `fpath`)
  proem completions fish > ~/.config/fish/completions/proem.fish";

/// Print the manual page, or write one page for each command
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Directory to write the pages to
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "proem", &mut script);
    let script = String::from_utf8_lossy(&script);
    print_raw(&with_values(arguments.shell, &script))
}

/// Adds names to the scripts that lack them: those for PowerShell and Elvish complete commands and flags but no values, the
/// one for fish no positional arguments, the one for bash no `--flag=value` and no second value of a flag, and neither it nor
/// the one for zsh a list with commas.
fn with_values(shell: Shell, script: &str) -> String {
    match shell {
        Shell::PowerShell => with_powershell_values(script, &values()),
        Shell::Elvish => with_elvish_values(script, &values()),
        Shell::Fish => with_fish_values(script, &values()),
        Shell::Bash => with_bash_values(script, &values()),
        Shell::Zsh => with_zsh_lists(script),
        _ => script.to_owned(),
    }
}

/// The values of each flag with names to complete; the key `profile show` is for the argument of that command.
type Values = BTreeMap<String, Vec<String>>;

/// The word before the argument of `proem profile show`.
const PROFILE_SHOW: &str = "profile show";

fn values() -> Values {
    let mut command = Arguments::command();
    command.build();
    let mut values = Values::new();
    add_values(&command, "", &mut values);
    values
}

fn add_values(command: &clap::Command, path: &str, values: &mut Values) {
    for argument in command.get_arguments() {
        let offered: Vec<String> = argument
            .get_possible_values()
            .into_iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| value.get_name().to_owned())
            .collect();
        if !argument.get_action().takes_values() || offered.is_empty() {
            continue;
        }
        let long = argument.get_long_and_visible_aliases().unwrap_or_default();
        let long = long.into_iter().map(|name| format!("--{name}"));
        let short = argument.get_short().map(|name| format!("-{name}"));
        let mut names: Vec<String> = long.chain(short).collect();
        if path == PROFILE_SHOW && argument.is_positional() {
            names.push(PROFILE_SHOW.to_owned());
        }
        for name in names {
            let known = values.entry(name).or_default();
            known.extend(offered.iter().filter(|value| !known.contains(value)).cloned().collect::<Vec<_>>());
        }
    }
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        add_values(inner, format!("{path} {}", inner.get_name()).trim_start(), values);
    }
}

/// Quotes words for a script.
fn quoted(words: &[String], separator: &str) -> String {
    let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', "''")));
    quoted.collect::<Vec<_>>().join(separator)
}

/// Adds values to the script for PowerShell, which first tests if the previous word takes a value.
fn with_powershell_values(script: &str, values: &Values) -> String {
    const HEAD: &str = "    param($wordToComplete, $commandAst, $cursorPosition)\n";
    let case = |(flag, words): (&String, &Vec<String>)| {
        format!("        '{flag}' {{ @({}) }}\n", quoted(words, ", "))
    };
    let cases = values.iter().map(case).collect::<Vec<_>>().concat();
    let own = format!(
        "{HEAD}
    $words = @($commandAst.CommandElements | ForEach-Object {{ $_.ToString() }})
    $last = if ($wordToComplete) {{ $words.Count - 2 }} else {{ $words.Count - 1 }}
    $before = if ($last -ge 1) {{ $words[$last] }} else {{ '' }}
    if ($last -ge 2 -and $before -eq 'show') {{ $before = \"$($words[$last - 1]) show\" }}
    $values = @(switch -CaseSensitive ($before) {{
{cases}    }})
    if ($values.Count -gt 0) {{
        $values.Where{{ $_ -like \"$wordToComplete*\" }} | ForEach-Object {{
            [CompletionResult]::new($_, $_, [CompletionResultType]::ParameterValue, $_)
        }}
        return
    }}
"
    );
    script.replacen(HEAD, &own, 1)
}

/// Adds a function to the script for bash that completes `--flag=value`, lists and the second value of `--diff`.
fn with_bash_values(script: &str, values: &Values) -> String {
    let case = |(flag, words): (&String, &Vec<String>)| {
        format!("        {flag}) names=\"{}\" ;;\n", words.join(" "))
    };
    let cases = values.iter().filter(|(flag, _)| flag.starts_with("--")).map(case).collect::<String>();
    let script = script.replacen("_proem() {", "_proem_words() {", 1);
    format!(
        "_proem() {{
    local cur=\"$2\" flag=\"\" lead=\"\" names=\"\" before=\"\"
    if [[ COMP_CWORD -ge 2 ]]; then
        before=\"${{COMP_WORDS[COMP_CWORD-2]}}\"
    fi
    if [[ \"$cur\" == --*=* ]]; then
        flag=\"${{cur%%=*}}\" lead=\"${{cur%%=*}}=\" cur=\"${{cur#*=}}\"
    elif [[ \"$cur\" == \"=\" ]]; then
        flag=\"$3\" cur=\"\"
    elif [[ \"$3\" == \"=\" ]]; then
        flag=\"$before\"
    elif [[ \"$before\" == \"--diff\" && \"$cur\" != -* ]]; then
        flag=\"--diff\"
    elif [[ \"$3\" == \"--as\" && \"$cur\" == *,* ]]; then
        flag=\"--as\"
    fi
    case \"$flag\" in
{cases}    esac
    if [[ -z \"$names\" ]]; then
        _proem_words \"$@\"
        return
    fi
    if [[ \"$flag\" == \"--as\" && \"$cur\" == *,* ]]; then
        lead=\"$lead${{cur%,*}},\" cur=\"${{cur##*,}}\"
    fi
    COMPREPLY=( $(compgen -P \"$lead\" -W \"$names\" -- \"$cur\") )
}}

{script}"
    )
}

/// Adds lists of names separated by commas to the script for zsh.
fn with_zsh_lists(script: &str) -> String {
    const LIST: &str = ":NAMES:(";
    let mut parts = script.split(LIST);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (names, rest) = part.split_once(')').unwrap_or((part, ""));
        whole.push_str(&format!(":NAMES:_sequence compadd - {names}{rest}"));
    }
    whole
}

/// Adds the argument of `profile show` to the script for fish.
fn with_fish_values(script: &str, values: &Values) -> String {
    const SHOW: &str = "__fish_proem_using_subcommand profile; and __fish_seen_subcommand_from show";
    let names = values.get(PROFILE_SHOW).map(|names| names.join(" ")).unwrap_or_default();
    format!("{script}complete -c proem -n \"{SHOW}\" -f -a \"{names}\"\n")
}

/// Adds values to the script for Elvish. The generated function handles everything else.
fn with_elvish_values(script: &str, values: &Values) -> String {
    const HEAD: &str = "set edit:completion:arg-completer[proem] = {|@words|";
    let entry =
        |(flag, words): (&String, &Vec<String>)| format!("        &'{flag}'=[{}]\n", quoted(words, " "));
    let entries = values.iter().map(entry).collect::<Vec<_>>().concat();
    let script = script.replacen(HEAD, "fn proem-words {|@words|", 1);
    format!(
        "{script}
{HEAD}
    var values = [
{entries}    ]
    var before = ''
    if (>= (count $words) 3) {{
        set before = $words[-2]
    }}
    if (and (>= (count $words) 4) (eq $before show)) {{
        set before = $words[-3]' show'
    }}
    if (has-key $values $before) {{
        all $values[$before]
    }} else {{
        proem-words $@words
    }}
}}
"
    )
}

pub(crate) fn manual(arguments: &ManArguments) -> Result<(), Failure> {
    let Some(folder) = &arguments.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Arguments::command()).render(&mut page).map_err(Failure::Output)?;
        return print_raw(&String::from_utf8_lossy(&page));
    };
    let refuse = |why| Failure::Write { path: folder.display().to_string(), why };
    std::fs::create_dir_all(folder).map_err(refuse)?;
    clap_mangen::generate_to(Arguments::command(), folder).map_err(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_for_a_name_offers_names() {
        let values = values();
        for (flag, name) in [
            ("--for", "anthropic"),
            ("--provider", "sglang"),
            ("--profile", "default"),
            ("-p", "layers"),
            ("--as", "codex"),
            ("--diff", "claude-code"),
            ("--model", "claude-opus-5"),
            ("--format", "json"),
            (PROFILE_SHOW, "template"),
        ] {
            assert!(values.get(flag).is_some_and(|names| names.iter().any(|one| one == name)), "{flag}");
        }
    }

    #[test]
    fn scripts_of_each_shell_have_the_names() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "proem", &mut script);
            let script = String::from_utf8(script).expect("it is UTF-8");
            let whole = with_values(shell, &script);
            assert_ne!(whole, script, "{shell}: the place to add names at is not there");
            for name in ["openai-responses", "claude-code", "claude-opus-5", "engraving"] {
                assert!(whole.contains(name), "{shell}: {name}");
            }
        }
    }
}
