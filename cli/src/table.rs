//! Rows in columns: no borders, so that `grep` and `awk` work; as wide as the terminal, unlimited in a pipe.

use crate::text;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};

const GAP: u16 = 2;

/// A last column narrower than this cannot be read: then the terminal breaks the lines, as it does with a log.
const LAST_COLUMN_MIN: u16 = 24;

/// A table with a heading. Cells are data: they are made safe here.
pub fn render(heading: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(heading.iter().map(|name| name.to_uppercase()));
    for row in rows {
        table.add_row(row.iter().map(|cell| text::line(cell)));
    }
    let last = heading.len() - 1;
    for (number, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, GAP));
        // Ids and states are copied from the screen: only the last column is broken into lines.
        if number != last {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    let taken: u16 = table.column_max_content_widths()[..last].iter().map(|width| width + GAP).sum();
    if table.width().is_some_and(|width| width < taken + LAST_COLUMN_MIN) {
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    trim_lines(&table.to_string())
}

/// `name  value` lines with the values under each other; a value with several lines is indented.
pub fn facts(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0) + 2;
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
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}
