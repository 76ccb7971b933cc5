//! Attributes of `cuda_emulator`, re-exported by it under the names of Rust-CUDA's `cuda_std`.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{ToTokens, quote};
use syn::visit_mut::VisitMut;
use syn::{Error, Item, ItemFn, ItemStatic, ReturnType, Safety, parse_macro_input};

mod rewrite;

/// Makes a kernel of an `unsafe fn`: an ordinary function that the emulator runs, with checked accesses.
///
/// Hints in parentheses, as Rust-CUDA takes them, change nothing.
#[proc_macro_attribute]
pub fn kernel(_: TokenStream, item: TokenStream) -> TokenStream {
    let mut function = parse_macro_input!(item as ItemFn);
    if let Err(error) = check_kernel(&function) {
        return error.into_compile_error().into();
    }
    rewrite::Rewriter::default().visit_item_fn_mut(&mut function);
    function.into_token_stream().into()
}

fn check_kernel(function: &ItemFn) -> Result<(), Error> {
    let signature = &function.sig;
    let refuse = |tokens: &dyn ToTokens, why| Err(Error::new_spanned(Whole(tokens), why));
    if !matches!(signature.safety, Safety::Unsafe(_)) {
        return refuse(
            &signature.fn_token,
            "a kernel is an `unsafe fn`: its launch decides whether its pointers are valid",
        );
    }
    if !signature.generics.params.is_empty() {
        return refuse(
            &signature.generics,
            "a kernel cannot be generic: call the generic function from a kernel",
        );
    }
    match &signature.output {
        ReturnType::Type(_, _) => refuse(
            &signature.output,
            "a kernel returns nothing: pass a pointer to write results to",
        ),
        ReturnType::Default => Ok(()),
    }
}

/// Tokens behind a reference.
struct Whole<'a>(&'a dyn ToTokens);

impl ToTokens for Whole<'_> {
    fn to_tokens(&self, tokens: &mut Tokens) {
        self.0.to_tokens(tokens);
    }
}

/// Makes the accesses of a function known to the emulator, or of all functions in an `impl` or `mod`:
/// for what kernels call.
#[proc_macro_attribute]
pub fn checked(_: TokenStream, item: TokenStream) -> TokenStream {
    let mut item = parse_macro_input!(item as Item);
    match &item {
        Item::Fn(_) | Item::Impl(_) | Item::Trait(_) => {}
        Item::Mod(module) if module.content.is_some() => {}
        _ => {
            let why =
                "#[checked] goes on a function, an `impl`, a trait, or a module with its contents";
            return Error::new_spanned(&item, why).into_compile_error().into();
        }
    }
    rewrite::Rewriter::default().visit_item_mut(&mut item);
    item.into_token_stream().into()
}

/// Marks functions that run on the device alone, in Rust-CUDA. Here it does the same as `#[checked]`.
#[proc_macro_attribute]
pub fn gpu_only(arguments: TokenStream, item: TokenStream) -> TokenStream {
    checked(arguments, item)
}

/// Changes nothing: nothing is dropped from a program of the host.
#[proc_macro_attribute]
pub fn externally_visible(_: TokenStream, item: TokenStream) -> TokenStream {
    item
}

/// Says where a `static` lies. One in shared memory has to be inside a kernel, or a function that is
/// `#[checked]`, which replaces it. Others stay as they are.
#[proc_macro_attribute]
pub fn address_space(space: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as ItemStatic);
    match space.to_string().as_str() {
        "shared" => {
            let why = "a `static` in shared memory goes into the kernel that uses it, or into a \
                       function with #[checked]: the emulator has memory for each launch";
            Error::new_spanned(&item.ident, why).into_compile_error()
        }
        "global" | "constant" | "local" => quote!(#item),
        other => {
            let why = format!(
                "`{other}` is no address space: write `shared`, `global`, `constant` or `local`"
            );
            Error::new_spanned(&item.ident, why).into_compile_error()
        }
    }
    .into()
}
