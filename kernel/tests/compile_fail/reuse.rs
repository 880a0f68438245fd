use ephor_kernel::Permit;

fn use_up(permit: Permit) -> u32 {
    permit.attempt()
}

fn twice(permit: Permit) -> u32 {
    use_up(permit) + use_up(permit)
}

fn main() {}
