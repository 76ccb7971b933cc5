//! The `#[kernel]` attribute, re-exported by `cuda_std`.

use proc_macro::{Delimiter, TokenStream, TokenTree};

/// Makes an `unsafe fn` an entry point of the PTX module.
///
/// On the device the function gets the `ptx-kernel` ABI and an unmangled symbol: its own name, or
/// the string after `name =` (a literal or `concat!(…)`), for functions made by a macro from a
/// list. Off the device it stays an ordinary Rust function, so that the emulator can call it and a
/// panic in it is a reported fault instead of an abort at a foreign ABI.
///
/// Pointers have to be parameters of their own: inside a struct parameter they would be compiled
/// to loads that do not know their address space.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match expand(arguments, item) {
        Ok(tokens) => tokens,
        Err(why) => format!("::core::compile_error!({why:?});")
            .parse()
            .expect("a valid item"),
    }
}

fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream, &'static str> {
    let tokens: Vec<TokenTree> = item.into_iter().collect();
    let position = |word: &str| {
        tokens
            .iter()
            .position(|t| matches!(t, TokenTree::Ident(i) if i.to_string() == word))
    };
    let function = position("fn").ok_or("#[kernel] goes on a function")?;
    if position("unsafe").is_none_or(|at| at > function) {
        return Err(
            "a kernel is an `unsafe fn`: its launch decides whether its pointers are valid",
        );
    }
    match tokens.get(function + 2) {
        Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Parenthesis => {}
        _ => return Err("a kernel cannot be generic: instantiate the generic body in a kernel"),
    }
    let symbol = symbol(arguments)?;

    let mut out: TokenStream = format!("#[cfg(target_arch = \"nvptx64\")] #[unsafe({symbol})]")
        .parse()
        .expect("attributes");
    out.extend(tokens[..function].iter().cloned());
    out.extend(
        "extern \"ptx-kernel\""
            .parse::<TokenStream>()
            .expect("an ABI"),
    );
    out.extend(tokens[function..].iter().cloned());
    out.extend(
        "#[cfg(not(target_arch = \"nvptx64\"))]"
            .parse::<TokenStream>()
            .expect("a cfg"),
    );
    out.extend(tokens);
    Ok(out)
}

/// The attribute that names the symbol in PTX.
fn symbol(arguments: TokenStream) -> Result<String, &'static str> {
    let mut arguments = arguments.into_iter();
    match arguments.next() {
        None => Ok("no_mangle".into()),
        Some(TokenTree::Ident(key)) if key.to_string() == "name" => {
            let _equals = arguments.next();
            let value: TokenStream = arguments.collect();
            Ok(format!("export_name = {value}"))
        }
        Some(_) => Err("#[kernel] takes nothing, or `name = \"symbol\"`"),
    }
}
