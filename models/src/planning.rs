//! The words in which a model is asked for a plan, and what it answers read out of its wrapping.

use ephor_base::{Confidentiality, Integrity, Label, Message, ModelAnswer, ModelTask, Source, Span, SpanId};

/// What a planner is told. The grammar is that of `docs/provenance.md`.
const INSTRUCTION: &str = include_str!("planning.md");

/// A planning as a conversation that any model can have: the instruction and the tools as text, and what people typed.
pub(crate) fn worded(task: &ModelTask) -> ModelTask {
    let tools: Vec<String> = task
        .tools
        .iter()
        .map(|tool| format!("- {}: {}\n  Arguments: {}", tool.name, tool.description, tool.schema))
        .collect();
    let text = format!("{INSTRUCTION}\nThe tools:\n\n{}\n", tools.join("\n"));
    let label = Label::new(Source::Operator, Integrity::Trusted, Confidentiality::Public);
    let told = Message::System(vec![Span { id: SpanId(0), label, text }]);
    let messages = std::iter::once(told).chain(task.messages.iter().cloned()).collect();
    ModelTask { messages, tools: Vec::new(), ..task.clone() }
}

/// The same once more, after an answer that is no plan.
pub(crate) fn repaired(task: &ModelTask, answer: &str, why: &str) -> ModelTask {
    let label = Label::new(Source::Operator, Integrity::Trusted, Confidentiality::Public);
    let text = format!("This is no plan: {why}. Answer with the corrected plan as one JSON object and nothing else.");
    let answered = Message::Assistant(ModelAnswer { text: answer.to_owned(), ..ModelAnswer::default() }.into());
    let told = Message::User(vec![Span { id: SpanId(0), label, text }]);
    let messages = task.messages.iter().cloned().chain([answered, told]).collect();
    ModelTask { messages, ..task.clone() }
}

/// How many bytes the words around a planning add at most, and a repair besides what was answered.
pub(crate) const ADDED: usize = INSTRUCTION.len() + 1024;

/// The JSON object in what a model answered: models like to put a fence, or a sentence, around it.
pub(crate) fn object_in(text: &str) -> &str {
    let object = text.find('{').zip(text.rfind('}')).and_then(|(from, to)| text.get(from..=to));
    object.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use ephor_base::{Message, ModelTask, Purpose};

    use super::{object_in, worded};
    use crate::testing::{said, task, tools};

    #[test]
    fn a_planner_is_told_of_the_tools_in_words_and_offered_none() {
        let messages = vec![Message::User(vec![said("write hello to a.txt")])];
        let task = ModelTask { messages, tools: tools(), purpose: Purpose::Plan, ..task("openai", "m", "", 0) };
        let worded = worded(&task);
        assert!(worded.tools.is_empty());
        let Some(Message::System(told)) = worded.messages.first() else { panic!("{:?}", worded.messages) };
        assert!(told[0].text.contains("fs.write") && told[0].text.contains("\"steps\""), "{}", told[0].text);
        assert_eq!(worded.messages[1..], task.messages);
    }

    #[test]
    fn the_object_is_found_in_its_wrapping() {
        for text in ["{\"steps\":[]}", "```json\n{\"steps\":[]}\n```", "Here it is: {\"steps\":[]} as asked"] {
            assert_eq!(object_in(text), "{\"steps\":[]}");
        }
        assert_eq!(object_in("I cannot."), "I cannot.");
    }
}
