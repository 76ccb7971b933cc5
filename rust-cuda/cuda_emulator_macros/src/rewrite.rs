//! Rewrites a function such that it tells the emulator of each access to memory.
//!
//! An expression is either asked for its value, or names a *place*: `*e`, `e[i]` and `e.f`, nested in any way.
//! A place that is asked for its value is read. It becomes `*read(&place)`, which is the same place. Assignments
//! become `*write(&mut place) = value`. Local variables are no memory here, but their parts may be behind a
//! reference, so `e.f` counts.
//!
//! Where a raw pointer may be followed, `&raw const` takes the place of `&`: a reference has to be valid. The
//! emulator then gets to know whether it is one, because a raw pointer to nowhere is a fault.
//!
//! All tokens have the span of the expression, so that a fault has its line.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, BinOp, Block, Expr, ExprCall, ExprMethodCall, ExprUnsafe, Ident, ImplItemFn, Item,
    ItemFn, ItemStatic, Macro, Safety, Signature, Stmt, Token, TraitItemFn, Type, UnOp,
    parse_quote_spanned,
};

/// Kind of an access, and the function that is told.
#[derive(Clone, Copy)]
enum Access {
    Read,
    Write,
    /// Read and written, as by `+=`.
    Update,
}

impl Access {
    fn is_mutable(self) -> bool {
        !matches!(self, Self::Read)
    }
}

#[derive(Default)]
pub(super) struct Rewriter {
    /// Depth of `unsafe`.
    depth: u32,
}

/// Name of the pointer that a place was reached by.
fn pointer_name(span: Span) -> Ident {
    Ident::new("__emulated_pointer", span)
}

impl Rewriter {
    fn function(&mut self, signature: &Signature, block: &mut Block) {
        let outer = std::mem::replace(
            &mut self.depth,
            u32::from(matches!(signature.safety, Safety::Unsafe(_))),
        );
        self.visit_block_mut(block);
        self.depth = outer;
        let span = signature.ident.span();
        let import: Stmt = parse_quote_spanned! {span=>
            #[allow(unused_imports)]
            use ::cuda_std::checked::{NotCopied as _, NotRaw as _};
        };
        block.stmts.insert(0, import);
    }

    /// Rewrites the place `e`, which is accessed.
    fn access(&mut self, e: &mut Expr, access: Access) {
        let span = e.span();
        self.place(e);
        let mut operand = None;
        if self.depth > 0
            && let Some(star) = star_of(e)
        {
            operand = Some(bind(star, span));
        }
        let place = &*e;
        *e = if let Some((kind, hoisted)) = operand {
            let call = match access {
                Access::Read => quote_spanned! {span=>
                    ::cuda_std::checked::read(&raw const #place, #kind.pointer())
                },
                Access::Write => quote_spanned! {span=>
                    ::cuda_std::checked::write(&raw mut #place, #kind.pointer())
                },
                Access::Update => quote_spanned! {span=>
                    ::cuda_std::checked::update(&raw mut #place, #kind.pointer())
                },
            };
            let call = with_operand(hoisted, &call, span);
            parse_quote_spanned!(span=> (*#call))
        } else {
            match access {
                Access::Read => parse_quote_spanned! {span=>
                    (*::cuda_std::checked::read_reference(&#place))
                },
                Access::Write => parse_quote_spanned! {span=>
                    (*::cuda_std::checked::write_reference(&mut #place))
                },
                Access::Update => parse_quote_spanned! {span=>
                    (*::cuda_std::checked::update_reference(&mut #place))
                },
            }
        };
    }

    /// Rewrites what the place `e` consists of.
    fn place(&mut self, e: &mut Expr) {
        match e {
            Expr::Paren(inner) => self.place(&mut inner.expr),
            Expr::Group(inner) => self.place(&mut inner.expr),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => {
                self.visit_expr_mut(&mut unary.expr);
            }
            Expr::Index(index) => {
                self.place(&mut index.expr);
                self.visit_expr_mut(&mut index.index);
            }
            Expr::Field(field) => self.place(&mut field.base),
            Expr::Path(_) => {}
            _ => self.visit_expr_mut(e),
        }
    }

    /// Rewrites `&place`: a reference by a raw pointer has to stay within bounds.
    fn borrow(&mut self, e: &mut Expr, access: Access) {
        let span = e.span();
        let Expr::Reference(reference) = e else {
            return self.place(e);
        };
        self.place(&mut reference.expr);
        if self.depth == 0 {
            return;
        }
        let Some(star) = star_of(&mut reference.expr) else {
            return;
        };
        let (kind, hoisted) = bind(star, span);
        let place = &reference.expr;
        let check = if access.is_mutable() {
            quote_spanned!(span=> ::cuda_std::checked::borrow_mut(&raw mut #place, #kind.pointer()))
        } else {
            quote_spanned!(span=> ::cuda_std::checked::borrow(&raw const #place, #kind.pointer()))
        };
        let checked = quote_spanned!(span=> { #check; #reference });
        let checked = with_operand(hoisted, &checked, span);
        *e = parse_quote_spanned!(span=> (#checked));
    }

    /// Methods take their receiver by value or by reference, which its type decides: it counts as read where the
    /// type can be copied.
    fn method(&mut self, e: &mut Expr) {
        let span = e.span();
        let Expr::MethodCall(call) = e else { return };
        let is_place = is_place(&call.receiver) && is_repeatable(&call.receiver);
        if is_place_like(&call.receiver) {
            self.place(&mut call.receiver);
        } else {
            self.visit_expr_mut(&mut call.receiver);
        }
        for argument in &mut call.args {
            self.visit_expr_mut(argument);
        }
        if self.depth > 0
            && let Some(access) = access_by_name(&call.method, call.args.len())
        {
            let (kind, hoisted) = bind(&mut call.receiver, span);
            let told = quote_spanned!(span=> { #kind.#access(); #call });
            let told = with_operand(hoisted, &told, span);
            *e = parse_quote_spanned!(span=> (#told));
        } else if is_place {
            let mut receiver = (*call.receiver).clone();
            let told = if self.depth > 0
                && let Some(star) = star_of(&mut receiver)
            {
                let (kind, hoisted) = bind(star, span);
                let told = quote_spanned! {span=>
                    ::cuda_std::checked::Copied(&raw const #receiver).read(#kind.pointer())
                };
                with_operand(hoisted, &told, span)
            } else {
                quote_spanned! {span=>
                    ::cuda_std::checked::Copied(&#receiver)
                        .read(::cuda_std::checked::REFERENCE)
                }
            };
            *e = parse_quote_spanned!(span=> ({ #told; #call }));
        }
    }

    /// `ptr::read(pointer)` and its like.
    fn call(&mut self, e: &mut Expr) {
        let span = e.span();
        let Expr::Call(call) = e else { return };
        if !matches!(*call.func, Expr::Path(_)) {
            self.place(&mut call.func);
        }
        for argument in &mut call.args {
            self.visit_expr_mut(argument);
        }
        if self.depth > 0
            && let Some(access) = access_by_path(call)
            && let Some(first) = call.args.first_mut()
        {
            let (kind, hoisted) = bind(first, span);
            let told = quote_spanned!(span=> { #kind.#access(); #call });
            let told = with_operand(hoisted, &told, span);
            *e = parse_quote_spanned!(span=> (#told));
        }
    }
}

impl VisitMut for Rewriter {
    fn visit_item_fn_mut(&mut self, function: &mut ItemFn) {
        function.attrs.push(lints(function.sig.ident.span()));
        self.function(&function.sig, &mut function.block);
    }

    fn visit_impl_item_fn_mut(&mut self, function: &mut ImplItemFn) {
        function.attrs.push(lints(function.sig.ident.span()));
        self.function(&function.sig, &mut function.block);
    }

    fn visit_trait_item_fn_mut(&mut self, function: &mut TraitItemFn) {
        if let Some(block) = &mut function.default {
            function.attrs.push(lints(function.sig.ident.span()));
            self.function(&function.sig, block);
        }
    }

    // What is evaluated by the compiler touches no memory.
    fn visit_item_mut(&mut self, item: &mut Item) {
        if matches!(
            item,
            Item::Fn(_) | Item::Impl(_) | Item::Mod(_) | Item::Trait(_)
        ) {
            visit_mut::visit_item_mut(self, item);
        }
    }

    fn visit_type_mut(&mut self, _: &mut Type) {}

    fn visit_block_mut(&mut self, block: &mut Block) {
        let mut shared = Vec::new();
        block.stmts.retain(|statement| match statement {
            Stmt::Item(Item::Static(item)) if is_shared(item) => {
                shared.push(item.clone());
                false
            }
            _ => true,
        });
        for item in &shared {
            Renamer(&item.ident).visit_block_mut(block);
        }
        visit_mut::visit_block_mut(self, block);
        let declarations = shared.iter().flat_map(|item| -> [Stmt; 2] {
            let ItemStatic { ident, ty, .. } = item;
            let declaration = parse_quote_spanned! {ident.span()=>
                let #ident: *mut #ty = ::cuda_std::shared_array![#ty; 1];
            };
            // The import of the attribute is in use.
            let attributes = item.attrs.iter().filter(|a| is_address_space(a));
            let paths = attributes.map(|attribute| attribute.path());
            let import = parse_quote_spanned! {ident.span()=>
                { #( #[#paths(local)] static _USED: () = (); )* }
            };
            [declaration, import]
        });
        block.stmts.splice(..0, declarations);
    }

    fn visit_expr_unsafe_mut(&mut self, e: &mut ExprUnsafe) {
        self.depth += 1;
        visit_mut::visit_expr_unsafe_mut(self, e);
        self.depth -= 1;
    }

    fn visit_expr_mut(&mut self, e: &mut Expr) {
        check_index(e);
        match e {
            _ if is_place(e) => self.access(e, Access::Read),
            Expr::Assign(assign) => {
                self.visit_expr_mut(&mut assign.right);
                self.assigned(&mut assign.left, Access::Write);
            }
            Expr::Binary(binary) if is_assignment(binary.op) => {
                self.visit_expr_mut(&mut binary.right);
                self.assigned(&mut binary.left, Access::Update);
            }
            Expr::Reference(reference) => {
                let access = if reference.mutability.is_some() {
                    Access::Write
                } else {
                    Access::Read
                };
                if is_place_like(&reference.expr) {
                    self.borrow(e, access);
                } else {
                    self.visit_expr_mut(&mut reference.expr);
                }
            }
            Expr::RawAddr(address) => self.place(&mut address.expr),
            Expr::MethodCall(_) => self.method(e),
            Expr::Call(_) => self.call(e),
            Expr::Repeat(repeat) => self.visit_expr_mut(&mut repeat.expr),
            Expr::Const(_) => {}
            _ => visit_mut::visit_expr_mut(self, e),
        }
    }

    /// Arguments of the macros that are known to take expressions.
    fn visit_macro_mut(&mut self, call: &mut Macro) {
        const KNOWN: &[&str] = &[
            "assert",
            "assert_eq",
            "assert_ne",
            "debug_assert",
            "debug_assert_eq",
            "debug_assert_ne",
            "format",
            "panic",
            "print",
            "println",
        ];
        let is_known = |name: &Ident| KNOWN.iter().any(|known| name == known);
        if !call
            .path
            .segments
            .last()
            .is_some_and(|s| is_known(&s.ident))
        {
            return;
        }
        let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
        if let Ok(mut arguments) = call.parse_body_with(parser) {
            for argument in &mut arguments {
                self.visit_expr_mut(argument);
            }
            call.tokens = arguments.into_token_stream();
        }
    }
}

impl Rewriter {
    /// The left side of an assignment, which may take several places.
    fn assigned(&mut self, e: &mut Expr, access: Access) {
        match e {
            _ if is_place(e) => self.access(e, access),
            Expr::Tuple(tuple) => {
                for part in &mut tuple.elems {
                    self.assigned(part, access);
                }
            }
            Expr::Array(array) => {
                for part in &mut array.elems {
                    self.assigned(part, access);
                }
            }
            Expr::Path(_) | Expr::Infer(_) => {}
            _ => self.place(e),
        }
    }
}

/// A `static` in shared memory becomes a pointer to it.
struct Renamer<'a>(&'a Ident);

impl VisitMut for Renamer<'_> {
    fn visit_expr_mut(&mut self, e: &mut Expr) {
        if let Expr::Path(path) = e
            && path.path.is_ident(self.0)
        {
            let span = path.span();
            let name = self.0;
            let name = Ident::new(&name.to_string(), span);
            *e = parse_quote_spanned!(span=> (*#name));
        } else {
            visit_mut::visit_expr_mut(self, e);
        }
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}
}

fn is_shared(item: &ItemStatic) -> bool {
    item.attrs.iter().any(|attribute| {
        let space = attribute.parse_args::<Ident>();
        is_address_space(attribute) && space.is_ok_and(|space| space == "shared")
    })
}

fn is_address_space(attribute: &Attribute) -> bool {
    let name = attribute.path().segments.last();
    name.is_some_and(|name| name.ident == "address_space")
}

/// True of an expression that names a place in memory. A local variable as a whole is none.
fn is_place(e: &Expr) -> bool {
    match e {
        Expr::Paren(inner) => is_place(&inner.expr),
        Expr::Group(inner) => is_place(&inner.expr),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Deref(_)),
        Expr::Index(_) => true,
        Expr::Field(field) => is_place_like(&field.base),
        _ => false,
    }
}

fn is_place_like(e: &Expr) -> bool {
    match e {
        Expr::Paren(inner) => is_place_like(&inner.expr),
        Expr::Group(inner) => is_place_like(&inner.expr),
        Expr::Path(_) => true,
        _ => is_place(e),
    }
}

/// The operand of the outermost `*` in a place.
fn star_of(e: &mut Expr) -> Option<&mut Expr> {
    match e {
        Expr::Paren(inner) => star_of(&mut inner.expr),
        Expr::Group(inner) => star_of(&mut inner.expr),
        Expr::Index(index) => star_of(&mut index.expr),
        Expr::Field(field) => star_of(&mut field.base),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => Some(&mut unary.expr),
        _ => None,
    }
}

/// Puts a name in place of a pointer that is computed. Returns what tells the pointer's kind, and the computation.
fn bind(operand: &mut Expr, span: Span) -> (TokenStream, Option<Expr>) {
    let (name, hoisted) = if let Expr::Path(_) = operand {
        (operand.to_token_stream(), None)
    } else {
        let name = pointer_name(span);
        let bound = std::mem::replace(operand, parse_quote_spanned!(span=> #name));
        (name.into_token_stream(), Some(bound))
    };
    let kind = quote_spanned!(span=> ::cuda_std::checked::Kind(&#name));
    (kind, hoisted)
}

fn with_operand(hoisted: Option<Expr>, body: &TokenStream, span: Span) -> TokenStream {
    let name = pointer_name(span);
    match hoisted {
        Some(operand) => quote_spanned!(span=> (match #operand { #name => #body })),
        None => body.clone(),
    }
}

/// True of expressions that can be evaluated twice.
fn is_repeatable(e: &Expr) -> bool {
    const PURE: &[&str] = &[
        "add",
        "as_mut_ptr",
        "as_ptr",
        "cast",
        "offset",
        "sub",
        "wrapping_add",
        "wrapping_offset",
        "wrapping_sub",
    ];
    match e {
        Expr::Path(_) | Expr::Lit(_) => true,
        Expr::Paren(inner) => is_repeatable(&inner.expr),
        Expr::Group(inner) => is_repeatable(&inner.expr),
        Expr::Field(field) => is_repeatable(&field.base),
        Expr::Index(index) => is_repeatable(&index.expr) && is_repeatable(&index.index),
        Expr::Unary(unary) => is_repeatable(&unary.expr),
        Expr::Cast(cast) => is_repeatable(&cast.expr),
        Expr::Binary(binary) => {
            !is_assignment(binary.op) && is_repeatable(&binary.left) && is_repeatable(&binary.right)
        }
        Expr::MethodCall(ExprMethodCall {
            receiver,
            method,
            args,
            ..
        }) => {
            PURE.iter().any(|pure| method == pure)
                && is_repeatable(receiver)
                && args.iter().all(is_repeatable)
        }
        _ => false,
    }
}

fn is_assignment(op: BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

/// Elements that are taken without a check are taken with one: the standard library's own would end the program.
fn check_index(e: &mut Expr) {
    let span = e.span();
    let Expr::MethodCall(call) = e else { return };
    let (slice, arguments) = (&call.receiver, &call.args);
    let checked = match (call.method.to_string().as_str(), call.args.len()) {
        ("get_unchecked", 1) => parse_quote_spanned!(span=> (&(#slice)[#arguments])),
        ("get_unchecked_mut", 1) => parse_quote_spanned!(span=> (&mut (#slice)[#arguments])),
        _ => return,
    };
    *e = checked;
}

/// The method of `Kind` for an access by a method of raw pointers.
fn access_by_name(name: &Ident, arguments: usize) -> Option<Ident> {
    let access = match (name.to_string().as_str(), arguments) {
        ("read" | "read_volatile" | "read_unaligned", 0) => "read",
        ("write" | "write_volatile" | "write_unaligned", 1) => "write",
        ("replace", 1) => "update",
        _ => return None,
    };
    Some(Ident::new(access, name.span()))
}

/// The same of a function in `core::ptr`.
fn access_by_path(call: &ExprCall) -> Option<Ident> {
    let Expr::Path(path) = &*call.func else {
        return None;
    };
    let mut names = path.path.segments.iter().rev().map(|s| &s.ident);
    let (name, module) = (names.next()?, names.next()?);
    (module == "ptr")
        .then(|| access_by_name(name, call.args.len().checked_sub(1)?))
        .flatten()
}

/// Silences lints that would blame the author for the rewritten text.
fn lints(span: Span) -> Attribute {
    parse_quote_spanned! {span=>
        #[allow(
            clippy::all,
            dangerous_implicit_autorefs,
            non_snake_case,
            static_mut_refs,
            unsafe_op_in_unsafe_fn,
            unused_braces,
            unused_must_use,
            unused_parens,
            unused_unsafe
        )]
    }
}
