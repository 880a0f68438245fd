//! What scout says of itself.

const EXAMPLES: &str = "\
- find my TODOs and summarize them
- where is `parse_config` defined? / which files mention \"deadline\"?
- find /fn \\w+_test/ in src (a regular expression goes between slashes)
- how many lines does README.md have?
- list src, then show me the first 20 lines of README.md
- compare a.txt and b.txt
- summarize docs/intro.md
- write \"hello\" to notes.txt (`ephor undo` puts back what was there)";

const OTHER_MODELS: &str = "For more than that, choose a language model: `--model openai/NAME`, with a key for OpenAI or \
                            with a base URL of a server such as Ollama, llama.cpp or vLLM.";

/// Who it is and what it can do.
pub(super) fn itself() -> String {
    format!(
        "I am scout, a small deterministic program that is built into Ephor. I am not a language model: I follow a fixed \
         set of rules, I know nothing but what the tools return from this folder, and the same request over the same files \
         gives the same answer. I need no key and no network.\n\nI can find, count, list, read, compare, summarise (by \
         counting and quoting, not by understanding) and write files. For example:\n\n{EXAMPLES}\n\n{OTHER_MODELS}"
    )
}

pub(super) fn greeting() -> String {
    format!(
        "Hello! I am scout, a small program and not a language model. Ask me something about the files here, for example:\n\n{EXAMPLES}"
    )
}

/// For a request that no rule fits. `verb` is what scout knows it does not do.
pub(super) fn not_understood(verb: Option<&str>) -> String {
    let why = match verb {
        Some(verb) => format!("I cannot do that: “{verb}” is nothing I know how to do"),
        None => "I did not understand that".to_owned(),
    };
    format!(
        "{why}, and I called no tool. I am scout, a small program with fixed rules and not a language model. What I do \
         understand looks like this:\n\n{EXAMPLES}\n\n{OTHER_MODELS}"
    )
}
