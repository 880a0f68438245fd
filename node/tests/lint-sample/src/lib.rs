//! What `agents` must never do, a line each. A line that ends in `//~` has to be reported, and no other.

use std::path::Path;

pub fn innocent(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

pub fn files(path: &Path, permissions: std::fs::Permissions, descriptor: std::os::fd::BorrowedFd<'_>) {
    let _ = std::fs::canonicalize(path); //~
    let _ = std::fs::copy(path, path); //~
    let _ = std::fs::create_dir(path); //~
    let _ = std::fs::create_dir_all(path); //~
    let _ = std::fs::exists(path); //~
    let _ = std::fs::hard_link(path, path); //~
    let _ = std::fs::metadata(path); //~
    let _ = std::fs::read(path); //~
    let _ = std::fs::read_dir(path); //~
    let _ = std::fs::read_link(path); //~
    let _ = std::fs::read_to_string(path); //~
    let _ = std::fs::remove_dir(path); //~
    let _ = std::fs::remove_dir_all(path); //~
    let _ = std::fs::remove_file(path); //~
    let _ = std::fs::rename(path, path); //~
    let _ = std::fs::set_permissions(path, permissions); //~
    let _ = std::fs::symlink_metadata(path); //~
    let _ = std::fs::write(path, "text"); //~
    let _ = std::os::unix::fs::chown(path, None, None); //~
    let _ = std::os::unix::fs::chroot(path); //~
    let _ = std::os::unix::fs::fchown(descriptor, None, None); //~
    let _ = std::os::unix::fs::lchown(path, None, None); //~
    let _ = std::os::unix::fs::symlink(path, path); //~
    let _ = path.canonicalize(); //~
    let _ = path.exists(); //~
    let _ = path.is_dir(); //~
    let _ = path.is_file(); //~
    let _ = path.is_symlink(); //~
    let _ = path.metadata(); //~
    let _ = path.read_dir(); //~
    let _ = path.read_link(); //~
    let _ = path.symlink_metadata(); //~
    let _ = path.try_exists(); //~
    let _ = std::fs::DirBuilder::new(); //~
    let _ = std::fs::File::open(path); //~
    let _ = std::fs::OpenOptions::new(); //~
    let _: Option<std::fs::ReadDir> = None; //~
}

pub fn network() {
    let _ = std::net::ToSocketAddrs::to_socket_addrs("localhost:1"); //~
    let _ = std::net::TcpListener::bind("localhost:1"); //~
    let _ = std::net::TcpStream::connect("localhost:1"); //~
    let _ = std::net::UdpSocket::bind("localhost:1"); //~
    let _ = std::os::unix::net::UnixDatagram::unbound(); //~
    let _ = std::os::unix::net::UnixListener::bind("socket"); //~
    let _ = std::os::unix::net::UnixStream::connect("socket"); //~
}

pub fn processes() {
    let _: Option<std::process::Child> = None; //~
    let _ = std::process::Command::new("sh"); //~
    let _ = std::process::id(); //~
    let _: fn() -> ! = std::process::abort; //~
    std::process::exit(1) //~
}

pub fn environment() {
    let _ = std::env::args(); //~
    let _ = std::env::args_os(); //~
    let _ = std::env::current_dir(); //~
    let _ = std::env::current_exe(); //~
    let _ = std::env::home_dir(); //~
    let _ = std::env::set_current_dir("/"); //~
    let _ = std::env::temp_dir(); //~
    let _ = std::env::var("HOME"); //~
    let _ = std::env::var_os("HOME"); //~
    let _ = std::env::vars(); //~
    let _ = std::env::vars_os(); //~
    unsafe { std::env::set_var("HOME", "/") }; //~
    unsafe { std::env::remove_var("HOME") }; //~
}

pub fn clock() {
    let _ = std::time::Instant::now(); //~
    let _ = std::time::SystemTime::now(); //~
    let _ = std::time::Instant::elapsed; //~
    let _ = std::time::SystemTime::elapsed; //~
}

pub fn threads() {
    std::thread::park_timeout(std::time::Duration::ZERO); //~
    std::thread::scope(|_| {}); //~
    std::thread::sleep(std::time::Duration::ZERO); //~
    let _ = std::thread::spawn(|| {}); //~
    let _ = std::thread::Builder::new(); //~
}

pub fn streams() {
    let _ = std::io::stderr(); //~
    let _ = std::io::stdin(); //~
    let _ = std::io::stdout(); //~
    dbg!(); //~
    eprint!("x"); //~
    eprintln!("x"); //~
    print!("x"); //~
    println!("x"); //~
}

pub fn tokio_files() {
    tokio::fs::canonicalize(); //~
    tokio::fs::copy(); //~
    tokio::fs::create_dir(); //~
    tokio::fs::create_dir_all(); //~
    tokio::fs::hard_link(); //~
    tokio::fs::metadata(); //~
    tokio::fs::read(); //~
    tokio::fs::read_dir(); //~
    tokio::fs::read_link(); //~
    tokio::fs::read_to_string(); //~
    tokio::fs::remove_dir(); //~
    tokio::fs::remove_dir_all(); //~
    tokio::fs::remove_file(); //~
    tokio::fs::rename(); //~
    tokio::fs::set_permissions(); //~
    tokio::fs::symlink_metadata(); //~
    tokio::fs::try_exists(); //~
    tokio::fs::write(); //~
    let _: Option<tokio::fs::DirBuilder> = None; //~
    let _: Option<tokio::fs::File> = None; //~
    let _: Option<tokio::fs::OpenOptions> = None; //~
}

pub fn tokio_network_and_processes() {
    tokio::net::lookup_host(); //~
    let _: Option<tokio::net::TcpListener> = None; //~
    let _: Option<tokio::net::TcpSocket> = None; //~
    let _: Option<tokio::net::TcpStream> = None; //~
    let _: Option<tokio::net::UdpSocket> = None; //~
    let _: Option<tokio::net::UnixDatagram> = None; //~
    let _: Option<tokio::net::UnixListener> = None; //~
    let _: Option<tokio::net::UnixStream> = None; //~
    let _: Option<tokio::process::Command> = None; //~
}

pub fn tokio_clock_and_tasks() {
    tokio::time::interval(); //~
    tokio::time::interval_at(); //~
    tokio::time::sleep(); //~
    tokio::time::sleep_until(); //~
    tokio::time::timeout(); //~
    tokio::time::timeout_at(); //~
    tokio::time::Instant::now(); //~
    tokio::spawn(); //~
    tokio::task::spawn(); //~
    tokio::task::spawn_blocking(); //~
    tokio::task::spawn_local(); //~
    tokio::task::block_in_place(); //~
    let _: Option<tokio::task::JoinSet> = None; //~
    let _: Option<tokio::task::LocalSet> = None; //~
    let _: Option<tokio::runtime::Builder> = None; //~
    let _: Option<tokio::runtime::Handle> = None; //~
    let _: Option<tokio::runtime::Runtime> = None; //~
}

pub fn tokio_streams() {
    tokio::io::stderr(); //~
    tokio::io::stdin(); //~
    tokio::io::stdout(); //~
}
