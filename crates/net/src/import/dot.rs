//! Graphs of Graphviz, in the DOT language: nodes, edges with ports, attributes, and subgraphs.

use super::{Cable, Inventory, quantities};
use crate::builders::fault;
use crate::error::SpecError;
use crate::text::shown;
use std::collections::BTreeMap;

const FORM: &str =
    "write links such as \"leaf1\":\"swp1\" -- \"spine1\":\"swp4\" [speed=\"100G\", length=\"20m\"]";

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A name, a number or a quoted text.
    Name(String),
    /// `{ } [ ] ; , : =`
    Mark(char),
    /// `--` or `->`.
    Edge,
}

/// A token and its place: line and column, from 1.
type Placed = (Token, (usize, usize));

type Attributes = BTreeMap<String, String>;

/// A node of an edge, with its port.
type Named = (String, Option<String>);

pub(super) fn read(text: &str, inventory: &mut Inventory) -> Result<(), SpecError> {
    let tokens = tokens(text)?;
    let directed = tokens
        .iter()
        .any(|(token, _)| matches!(token, Token::Name(word) if word.eq_ignore_ascii_case("digraph")));
    let mut parser = Parser { tokens: &tokens, at: 0, inventory };
    while !parser.takes('{') {
        if parser.tokens.get(parser.at).is_none() {
            return Err(parser.wrong("this file has no graph"));
        }
        parser.at += 1;
    }
    parser.statements(&Attributes::new(), &Attributes::new())?;
    if directed {
        inventory.join_directions();
    }
    Ok(())
}

struct Parser<'p> {
    tokens: &'p [Placed],
    at: usize,
    inventory: &'p mut Inventory,
}

impl Parser<'_> {
    fn place(&self) -> (usize, usize) {
        self.tokens.get(self.at).or(self.tokens.last()).map_or((1, 1), |(_, place)| *place)
    }

    fn wrong(&self, message: impl std::fmt::Display) -> SpecError {
        let (line, column) = self.place();
        fault(line, message, FORM).in_column(column)
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn takes(&mut self, mark: char) -> bool {
        let there = self.peek() == Some(&Token::Mark(mark));
        self.at += usize::from(there);
        there
    }

    fn name(&mut self) -> Result<String, SpecError> {
        match self.peek() {
            Some(Token::Name(name)) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.wrong("a name is missing here")),
        }
    }

    /// The statements up to the closing brace; `nodes` and `edges` have the attributes of all. Returns the nodes.
    fn statements(&mut self, nodes: &Attributes, edges: &Attributes) -> Result<Vec<Named>, SpecError> {
        let (mut nodes, mut edges) = (nodes.clone(), edges.clone());
        let mut named = Vec::new();
        loop {
            if self.takes(';') || self.takes(',') {
                continue;
            }
            if self.takes('}') {
                return Ok(named);
            }
            let Some(token) = self.peek() else {
                return Err(self.wrong("the brace } at the end is missing"));
            };
            if let Token::Name(word) = token {
                let word = word.to_ascii_lowercase();
                let follows =
                    |mark: char| self.tokens.get(self.at + 1).is_some_and(|(t, _)| *t == Token::Mark(mark));
                if follows('=') {
                    self.at += 2;
                    self.name()?;
                    continue;
                }
                if matches!(word.as_str(), "node" | "edge" | "graph") && follows('[') {
                    self.at += 1;
                    let attributes = self.attributes()?;
                    match word.as_str() {
                        "node" => nodes.extend(attributes),
                        "edge" => edges.extend(attributes),
                        _ => {}
                    }
                    continue;
                }
            }
            named.extend(self.statement(&nodes, &edges)?);
        }
    }

    /// A node, or a chain of edges.
    fn statement(&mut self, nodes: &Attributes, edges: &Attributes) -> Result<Vec<Named>, SpecError> {
        let place = self.place();
        let mut chain = vec![self.group(nodes, edges)?];
        while self.peek() == Some(&Token::Edge) {
            self.at += 1;
            chain.push(self.group(nodes, edges)?);
        }
        let own = self.attributes()?;
        if let [group] = &chain[..] {
            let role =
                ["role", "function", "type"].iter().find_map(|key| own.get(*key).or_else(|| nodes.get(*key)));
            for (name, _) in group {
                self.inventory.device(name);
                if let Some(role) = role {
                    self.inventory.set_role(name, role);
                }
            }
            return Ok(group.clone());
        }
        let mut attributes = edges.clone();
        attributes.extend(own);
        for pair in chain.windows(2) {
            for a in &pair[0] {
                for b in &pair[1] {
                    self.edge(place, a, b, &attributes)?;
                }
            }
        }
        Ok(chain.concat())
    }

    fn edge(
        &mut self,
        place: (usize, usize),
        a: &Named,
        b: &Named,
        of: &Attributes,
    ) -> Result<(), SpecError> {
        let value = |keys: &[&str]| keys.iter().find_map(|key| of.get(*key)).map(String::as_str);
        let refused = |message: String| fault(place.0, message, FORM).in_column(place.1);
        let rate = value(&["speed", "rate", "bandwidth"]).map(|rate| quantities::rate(rate, None));
        let delay = value(&["delay", "latency", "length"]).map(|delay| quantities::delay(delay, None));
        let (rate, delay) = (rate.transpose().map_err(refused)?, delay.transpose().map_err(refused)?);
        let port =
            |own: &Option<String>, keys: &[&str]| own.clone().or_else(|| value(keys).map(str::to_string));
        let ports = [
            port(&a.1, &["tailport", "taillabel", "sport"]),
            port(&b.1, &["headport", "headlabel", "dport"]),
        ];
        let ends =
            [self.inventory.end(&a.0, ports[0].as_deref()), self.inventory.end(&b.0, ports[1].as_deref())];
        self.inventory.connect(Cable { ends, rate, delay, loss: 0.0, line: place.0 })
    }

    /// A node with its port, or the nodes of a subgraph.
    fn group(&mut self, nodes: &Attributes, edges: &Attributes) -> Result<Vec<Named>, SpecError> {
        let is_subgraph =
            matches!(self.peek(), Some(Token::Name(word)) if word.eq_ignore_ascii_case("subgraph"));
        if is_subgraph {
            self.at += 1;
            if self.peek() != Some(&Token::Mark('{')) {
                self.name()?;
            }
        }
        if self.takes('{') {
            return self.statements(nodes, edges);
        }
        let name = self.name()?;
        let port = if self.takes(':') { Some(self.name()?) } else { None };
        // A compass point.
        if self.takes(':') {
            self.name()?;
        }
        Ok(vec![(name, port)])
    }

    fn attributes(&mut self) -> Result<Attributes, SpecError> {
        let mut attributes = Attributes::new();
        while self.takes('[') {
            while !self.takes(']') {
                if self.takes(',') || self.takes(';') {
                    continue;
                }
                let key = self.name()?;
                if !self.takes('=') {
                    return Err(self.wrong(format!("the attribute `{}` has no value", shown(&key))));
                }
                attributes.insert(key.to_ascii_lowercase(), self.name()?);
            }
        }
        Ok(attributes)
    }
}

fn tokens(text: &str) -> Result<Vec<Placed>, SpecError> {
    let mut found = Vec::new();
    let mut rest = text;
    // Places are counted from the last token on, and not from the beginning of the file.
    let (mut line, mut start) = (1, 0);
    let mut counted = 0;
    while let Some(c) = rest.chars().next() {
        let at = text.len() - rest.len();
        line += text[counted..at].matches('\n').count();
        start = text[counted..at].rfind('\n').map_or(start, |i| counted + i + 1);
        counted = at;
        let here = (line, at - start + 1);
        let comment = ["//", "#"].iter().any(|mark| rest.starts_with(mark));
        if c.is_whitespace() {
            rest = rest.trim_start();
        } else if comment {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("/*") {
            rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
        } else if rest.starts_with("--") || rest.starts_with("->") {
            found.push((Token::Edge, here));
            rest = &rest[2..];
        } else if "{}[];,:=".contains(c) {
            found.push((Token::Mark(c), here));
            rest = &rest[1..];
        } else if c == '"' {
            let (text, after) = quoted(&rest[1..])
                .ok_or_else(|| fault(here.0, "the closing quote is missing", FORM).in_column(here.1))?;
            found.push((Token::Name(text), here));
            rest = after;
        } else {
            let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.') || !c.is_ascii();
            let end = rest.find(|c: char| !word(c)).unwrap_or(rest.len());
            if end == 0 {
                let message = format!("the character `{c}` is not expected here");
                return Err(fault(here.0, message, FORM).in_column(here.1));
            }
            found.push((Token::Name(rest[..end].to_string()), here));
            rest = &rest[end..];
        }
    }
    Ok(found)
}

/// The text up to the closing quote, and what follows it.
fn quoted(rest: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut chars = rest.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((text, &rest[at + 1..])),
            '\\' => match chars.next()? {
                (_, '"') => text.push('"'),
                (_, '\n') => {}
                (_, other) => text.extend(['\\', other]),
            },
            c => text.push(c),
        }
    }
    None
}
