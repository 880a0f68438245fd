//! However much a provider sends, no more of it is kept than the limits say.

use ephor_wire::{Broken, Cut, Decoder, End, Event, Grammar, Limits, Recourse};

use crate::common::{TURN, end, limits, read, read_within};

/// A stream in one grammar whose answer is this text.
fn saying(grammar: Grammar, text: &str) -> String {
    match grammar {
        Grammar::Anthropic => format!(
            "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
        ),
        Grammar::Chat => format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"),
        Grammar::Responses => {
            format!("data: {{\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"{text}\"}}\n\n")
        }
        Grammar::Gemini => {
            format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}]}}}}]}}\n\n")
        }
        Grammar::Ollama => format!("{{\"message\":{{\"content\":\"{text}\"}},\"done\":false}}\n"),
    }
}

/// One call, as each grammar begins it.
fn calling(grammar: Grammar, at: usize) -> String {
    match grammar {
        Grammar::Anthropic => format!(
            "data: {{\"type\":\"content_block_start\",\"index\":{at},\"content_block\":{{\"type\":\"tool_use\",\"id\":\"c{at}\",\"name\":\"x\",\"input\":{{}}}}}}\n\n\
             data: {{\"type\":\"content_block_stop\",\"index\":{at}}}\n\n"
        ),
        Grammar::Chat => format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{at},\"id\":\"c{at}\",\"function\":{{\"name\":\"x\",\"arguments\":\"{{}}\"}}}}]}}}}]}}\n\n"
        ),
        Grammar::Responses => format!(
            "data: {{\"type\":\"response.output_item.done\",\"output_index\":{at},\"item\":{{\"type\":\"function_call\",\"call_id\":\"c{at}\",\"name\":\"x\",\"arguments\":\"{{}}\"}}}}\n\n"
        ),
        Grammar::Gemini => {
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"x\",\"args\":{}}}]}}]}\n\n"
                .to_owned()
        }
        Grammar::Ollama => {
            "{\"message\":{\"tool_calls\":[{\"function\":{\"name\":\"x\",\"arguments\":{}}}]},\"done\":false}\n"
                .to_owned()
        }
    }
}

/// Pushes a gibibyte in pieces, and says what became of it and after how many bytes.
fn flood(grammar: Grammar, first: &str, piece: &str) -> (Broken, usize, Vec<Event>) {
    flood_within(grammar, limits(), first, piece)
}

fn flood_within(grammar: Grammar, limits: Limits, first: &str, piece: &str) -> (Broken, usize, Vec<Event>) {
    let (mut decoder, mut events) = (Decoder::new(grammar, limits, TURN), Vec::new());
    decoder.push(first.as_bytes(), &mut events).unwrap();
    let mut pushed = 0;
    while pushed < 1 << 30 {
        pushed += piece.len();
        if let Err(broken) = decoder.push(piece.as_bytes(), &mut events) {
            assert_eq!(decoder.push(b"more", &mut events), Err(broken.clone()), "it stays broken");
            assert!(decoder.is_done());
            return (broken, pushed, events);
        }
    }
    panic!("a gibibyte was taken");
}

#[test]
fn a_line_without_an_end_is_not_kept() {
    let most = 700_000;
    for grammar in Grammar::ALL {
        for first in ["data: ", ": ", "{\"a\": \"", "event: x\ndata: "] {
            let (broken, pushed, events) = flood(grammar, first, &"x".repeat(4096));
            assert!(matches!(broken, Broken::EventTooLong(_)) && pushed < most, "{grammar} {first} {broken} {pushed}");
            assert!(events.is_empty());
        }
        let (broken, pushed, _) = flood(grammar, "data: x\n", &"data: xyz\n".repeat(500));
        assert!(matches!(broken, Broken::EventTooLong(_)) && pushed < 2 * most, "{grammar}");
    }
}

#[test]
fn a_response_without_an_end_is_not_read() {
    for grammar in Grammar::ALL {
        let objects = format!("{{\"a\":\"{}\"}}\n", "x".repeat(4000));
        for (first, piece) in [("", " ".repeat(4096)), (": x", "\n\n: cccccccccccc\n\n".repeat(500)), ("{}", objects)] {
            let (broken, pushed, _) = flood_within(grammar, limits().with_total(2 << 20), first, &piece);
            assert!(
                matches!(broken, Broken::ResponseTooLong(_)) && pushed <= (2 << 20) + piece.len(),
                "{grammar} {broken} {pushed}"
            );
        }
    }
}

#[test]
fn a_model_that_ignores_the_limit_is_cut_off_there() {
    for grammar in Grammar::ALL {
        let (broken, _, events) = flood(grammar, "", &saying(grammar, &"x".repeat(1000)));
        let Broken::AnswerTooLong(most) = broken else { panic!("{grammar} {broken}") };
        let shown: usize = events.iter().map(|event| if let Event::Text(text) = event { text.len() } else { 0 }).sum();
        assert!(shown <= most && shown + 1000 > most, "{grammar}");
        let stream = saying(grammar, "xy").repeat(10);
        let (_, answer) = read_within(grammar, limits().with_answer(5), [stream.as_bytes()]);
        assert_eq!((answer.text().as_str(), answer.end), ("xyxy", End::CutOff(Cut::Bound)), "{grammar}");
    }
}

#[test]
fn as_many_calls_as_may_be_come_whole_and_one_more_is_refused() {
    for grammar in Grammar::ALL {
        let few = |count: usize| (0..count).map(|at| calling(grammar, at)).collect::<String>();
        let (_, answer) = read(grammar, [few(256).as_bytes()]);
        assert_eq!((answer.parts.len(), end(&answer.end).as_str()), (256, "cut_off:stream"), "{grammar}");
        let limits = limits().with_calls(3);
        let (_, answer) = read_within(grammar, limits, [few(3).as_bytes()]);
        assert_eq!(answer.parts.len(), 3, "{grammar}");
        let (_, answer) = read_within(grammar, limits, [few(4).as_bytes()]);
        let End::Failed(why) = answer.end else { panic!("{grammar}") };
        assert!(why.message().contains("more than 3 tools") && why.recourse() == Recourse::Never, "{grammar}");
    }
}

/// What an object may have is given, to the byte, whatever the pieces.
#[test]
fn an_event_of_exactly_the_bound_is_read() {
    for grammar in Grammar::ALL {
        let event = saying(grammar, &"x".repeat(5000));
        let most = event.trim_end().len();
        for (bound, text) in [(most, 5000), (most - 1, 0)] {
            for pieces in [1, 7, event.len()] {
                let limits = limits().with_event(bound);
                let (_, answer) = read_within(grammar, limits, event.as_bytes().chunks(pieces));
                assert_eq!(answer.text().len(), text, "{grammar} {bound} {pieces}");
            }
        }
    }
}

#[test]
fn where_a_response_is_cut_by_its_length_does_not_go_by_its_pieces() {
    for grammar in Grammar::ALL {
        let stream = saying(grammar, "abc").repeat(20);
        for total in 0..stream.len() as u64 {
            let limits = limits().with_total(total);
            let whole = read_within(grammar, limits, [stream.as_bytes()]);
            assert_eq!(read_within(grammar, limits, stream.as_bytes().chunks(11)), whole);
            assert_eq!(end(&whole.1.end), "failed:rejected", "{grammar} {total}");
        }
    }
}

#[test]
fn deep_nesting_is_neither_followed_nor_fatal() {
    for grammar in Grammar::ALL {
        let deep = format!("{}1{}", "[".repeat(50_000), "]".repeat(50_000));
        let stream = format!(
            "data: {{\"type\":\"x\",\"deep\":{deep},\"choices\":{deep},\"candidates\":{deep},\"message\":{deep}}}\n\n"
        );
        let (events, _) = read(grammar, [stream.as_bytes()]);
        assert!(events.is_empty(), "{grammar}");
    }
}

#[test]
fn limits_have_limits() {
    let greatest = Limits::of_request(u32::MAX, usize::MAX);
    assert_eq!(greatest, greatest.with_event(usize::MAX).with_answer(usize::MAX).with_calls(usize::MAX));
}

/// No model wrote it, so the answer's own bound says nothing of it.
#[test]
fn what_a_provider_wants_back_is_bounded_too() {
    let state = "x".repeat(1000);
    for (grammar, piece) in [
        (
            Grammar::Anthropic,
            format!(
                "{{\"type\":\"content_block_start\",\"content_block\":{{\"type\":\"redacted_thinking\",\"data\":\"{state}\"}}}}"
            ),
        ),
        (
            Grammar::Chat,
            format!("{{\"choices\":[{{\"delta\":{{\"reasoning_details\":[{{\"data\":\"{state}\"}}]}}}}]}}"),
        ),
        (
            Grammar::Gemini,
            format!(
                "{{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"\",\"thoughtSignature\":\"{state}\"}}]}}}}]}}"
            ),
        ),
    ] {
        let (broken, pushed, _) = flood(grammar, "", &format!("data: {piece}\n\n"));
        assert!(matches!(broken, Broken::AnswerTooLong(_)) && pushed < 1 << 20, "{grammar} {broken} {pushed}");
    }
    let item = |at: usize| {
        format!(
            "data: {{\"type\":\"response.output_item.done\",\"output_index\":{at},\"item\":{{\"type\":\"reasoning\",\"encrypted_content\":\"{state}\"}}}}\n\n"
        )
    };
    let (_, answer) = read(Grammar::Responses, [(0..300).map(item).collect::<String>().as_bytes()]);
    assert_eq!(answer.end, End::CutOff(Cut::Bound));
}
