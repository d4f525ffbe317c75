//! Rows in columns: no borders, so that `grep` and `awk` work; as wide as the terminal, unlimited in a pipe.

use crate::text;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};

/// A table with a heading. Cells are data: they are made safe here.
pub fn render(heading: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(heading.iter().map(|name| name.to_uppercase()));
    for row in rows {
        table.add_row(row.iter().map(|cell| text::line(cell)));
    }
    let last = heading.len() - 1;
    for (number, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        // Ids and states are copied from the screen: only the last column is broken into lines.
        if number != last {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    trim_lines(&table.to_string())
}

/// `name  value` lines with the values under each other; a value with several lines is indented.
pub fn facts(rows: &[(&str, String)]) -> String {
    let width = rows
        .iter()
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or(0)
        + 2;
    let mut out = String::new();
    for (name, value) in rows {
        for (number, value_line) in value.lines().enumerate() {
            let shown = if number == 0 { *name } else { "" };
            out.push_str(format!("{shown:<width$}{value_line}").trim_end());
            out.push('\n');
        }
    }
    out
}

fn trim_lines(text: &str) -> String {
    text.lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}
