fn needs_default<T: Default>() {}

fn main() {
    needs_default::<ephor_kernel::Permit>();
}
