//! The `#[kernel]` attribute, re-exported by `cuda_std`.

use proc_macro::{Delimiter, TokenStream, TokenTree};

/// Makes an `unsafe fn` an entry point of the PTX module.
///
/// On the device the function gets the `ptx-kernel` ABI and an unmangled symbol: its own name, or
/// the string after `name =` (a literal or `concat!(…)`), for functions made by a macro from a
/// list. After `since =` a number (80 for compute capability 8.0), it is left out of the modules for
/// older GPUs, which lack instructions that it uses. Off the device it stays an ordinary Rust function, so that the emulator can call it and a
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
    let (symbol, condition) = attributes(arguments)?;

    let mut out: TokenStream = format!("#[cfg({condition})] #[unsafe({symbol})]")
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

/// The attribute that names the symbol in PTX, and the condition under which it is compiled.
fn attributes(arguments: TokenStream) -> Result<(String, String), &'static str> {
    const WRONG: &str = "#[kernel] takes nothing, or `name = \"symbol\"`, or that and `since = 80`";
    let mut symbol = "no_mangle".to_owned();
    let mut condition = "target_arch = \"nvptx64\"".to_owned();
    let tokens: Vec<TokenTree> = arguments.into_iter().collect();
    let is_comma = |t: &TokenTree| matches!(t, TokenTree::Punct(p) if p.as_char() == ',');
    for argument in tokens
        .split(is_comma)
        .filter(|argument| !argument.is_empty())
    {
        let [TokenTree::Ident(key), TokenTree::Punct(_), value @ ..] = argument else {
            return Err(WRONG);
        };
        let value: TokenStream = value.iter().cloned().collect();
        match key.to_string().as_str() {
            "name" => symbol = format!("export_name = {value}"),
            "since" => {
                condition = format!("all({condition}, target_feature = \"sm_{value}\")");
            }
            _ => return Err(WRONG),
        }
    }
    Ok((symbol, condition))
}
