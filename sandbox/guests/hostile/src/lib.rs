//! A guest that misbehaves in every way the host must withstand. Each tool is one way.

#![expect(clippy::panic, reason = "one of the ways")]

wit_bindgen::generate!({ path: "../../wit", world: "tool" });

use exports::ephor::tool::guest::{Answer, Description, Failure, Guest};
use std::hint::black_box;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, ErrorCode, OpenFlags, PathFlags};

struct Hostile;

export!(Hostile);

impl Guest for Hostile {
    fn describe() -> Vec<Description> {
        Vec::new()
    }

    fn call(name: String, arguments: String) -> Result<Answer, Failure> {
        match name.as_str() {
            "loop" => loop {
                black_box(());
            },
            "allocate" => allocate(),
            "print" => loop {
                println!("{}", "more ".repeat(100));
            },
            "complain" => loop {
                eprintln!("{}", "more ".repeat(100));
            },
            "answer" => Ok(answer("x".repeat(arguments.len() * 1_000_000))),
            "list" => Ok(Answer { omitted: vec![String::new(); 10_000_000], ..answer(String::new()) }),
            "panic" => panic!("on purpose"),
            "exit" => std::process::exit(7),
            "recurse" => Ok(answer(recurse(1).to_string())),
            "sleep" => {
                std::thread::sleep(std::time::Duration::from_secs(3600));
                Ok(answer("awake".to_owned()))
            }
            "hoard" => hoard(),
            "look" => Ok(answer(look())),
            "open" => probe(&arguments, OpenFlags::empty(), DescriptorFlags::READ),
            "open-write" => probe(&arguments, OpenFlags::empty(), DescriptorFlags::WRITE),
            "truncate" => probe(&arguments, OpenFlags::TRUNCATE, DescriptorFlags::READ),
            "create" => probe(&arguments, OpenFlags::CREATE, DescriptorFlags::empty()),
            "mkdir" => told(workspace().create_directory_at(&arguments)),
            "unlink" => told(workspace().unlink_file_at(&arguments)),
            "rename" => told(workspace().rename_at(&arguments, &workspace(), "renamed")),
            "link" => told(workspace().link_at(PathFlags::empty(), &arguments, &workspace(), "linked")),
            "symlink" => told(workspace().symlink_at(&arguments, "link")),
            _ => Err(Failure::UnknownTool(name)),
        }
    }
}

fn answer(content: String) -> Answer {
    Answer { content, summary: String::new(), omitted: Vec::new() }
}

fn workspace() -> Descriptor {
    match wasip2::filesystem::preopens::get_directories().pop() {
        Some((descriptor, _)) => descriptor,
        None => panic!("no workspace"),
    }
}

fn allocate() -> ! {
    let mut held: Vec<Vec<u8>> = Vec::new();
    loop {
        held.push(black_box(vec![1; 1024 * 1024]));
    }
}

#[expect(unconditional_recursion, reason = "one of the ways")]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    recurse(depth + 1) + frame.iter().sum::<u64>()
}

fn hoard() -> ! {
    let workspace = workspace();
    let mut held = Vec::new();
    loop {
        held.push(workspace.open_at(PathFlags::empty(), ".", OpenFlags::empty(), DescriptorFlags::READ));
    }
}

/// Everything a guest can find out about where it runs.
fn look() -> String {
    let preopened: Vec<String> =
        wasip2::filesystem::preopens::get_directories().into_iter().map(|(_, name)| name).collect();
    let now = wasip2::clocks::wall_clock::now();
    format!(
        "environment {:?} arguments {:?} directory {:?} preopened {preopened:?} seconds {} nanoseconds {} random {:?}",
        wasip2::cli::environment::get_environment(),
        wasip2::cli::environment::get_arguments(),
        wasip2::cli::environment::initial_cwd(),
        now.seconds,
        wasip2::clocks::monotonic_clock::now(),
        wasip2::random::random::get_random_bytes(8),
    )
}

fn probe(path: &str, open: OpenFlags, flags: DescriptorFlags) -> Result<Answer, Failure> {
    told(workspace().open_at(PathFlags::SYMLINK_FOLLOW, path, open, flags))
}

fn told<T>(result: Result<T, ErrorCode>) -> Result<Answer, Failure> {
    match result {
        Ok(_) => Ok(answer("done".to_owned())),
        Err(code) => Ok(answer(code.name().to_owned())),
    }
}
