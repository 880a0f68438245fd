fn needs_clone<T: Clone>() {}

fn main() {
    needs_clone::<ephor_kernel::Permit>();
}
