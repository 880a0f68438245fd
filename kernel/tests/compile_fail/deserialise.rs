fn needs_serde<T: serde::de::DeserializeOwned>() {}
fn needs_cbor<T: for<'b> minicbor::Decode<'b, ()>>() {}

fn main() {
    needs_serde::<ephor_kernel::Permit>();
    needs_cbor::<ephor_kernel::Permit>();
}
