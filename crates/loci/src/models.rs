//! `loci models`: which models there are, and whether one answers.

use loci_app::UserError;
use loci_app::models::providers::{CheckedModel, ListedRow, ModelListing, check_model, list_models};
use loci_stdx::Env;
use serde_json::{Value, json};

use crate::config::write;
use crate::print::print_message;

#[derive(Debug, clap::Args)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    verb: ModelsVerb,
}

#[derive(Debug, clap::Subcommand)]
enum ModelsVerb {
    /// List the models of all providers, each with its window, price and features, and whether it may be chosen.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Settings to read beside the files: a file, or a JSON object.
        #[arg(long, value_name = "FILE-OR-JSON")]
        settings: Option<String>,
    },
    /// Ask a model one small question; exits with 1, and says why, when it does not answer.
    Check {
        /// The model: an alias, an id, or NAME/ID for one of a named provider.
        name: String,
        /// Settings to read beside the files: a file, or a JSON object.
        #[arg(long, value_name = "FILE-OR-JSON")]
        settings: Option<String>,
    },
}

pub(crate) fn run(env: &Env, args: &ModelsArgs) -> Result<u8, UserError> {
    match &args.verb {
        ModelsVerb::List { json, settings } => {
            let ModelListing { rows, notes } = list_models(env, settings.clone())?;
            let text = match json {
                true => format!("{}\n", Value::Array(rows.iter().map(to_json).collect())),
                false => rows.iter().map(|row| format!("{}\n", to_line(row))).collect(),
            };
            write(&text)?;
            for note in notes {
                print_message(&note);
            }
        }
        ModelsVerb::Check { name, settings } => {
            let CheckedModel { name, window, price, elapsed, answer } =
                check_model(env, name, settings.clone())?;
            let (window, price) = (window_text(window), price_text(price));
            let seconds = elapsed.as_secs_f64();
            write(&format!("{name} answers ({seconds:.1} s): {window}, {price}\n{answer}\n"))?;
        }
    }
    Ok(0)
}

fn to_json(row: &ListedRow) -> Value {
    let price = row
        .price
        .map(|price| json!({"input": price.input, "output": price.output, "cacheRead": price.cache_read}));
    let features = json!({"tools": row.features.tools, "images": row.features.images,
        "thinking": row.features.thinking, "effort": row.features.effort});
    json!({"name": row.name, "provider": row.provider, "protocol": row.protocol, "window": row.window,
        "maxOutput": row.max_output, "price": price, "features": features, "allowed": row.is_allowed,
        "reachable": row.is_reachable})
}

fn to_line(row: &ListedRow) -> String {
    let features = &row.features;
    let effort = (!features.effort.is_empty()).then(|| format!("effort {}", features.effort.join("/")));
    let words = [(features.tools, "tools"), (features.images, "images"), (features.thinking, "thinking")];
    let words = words.into_iter().filter(|(has, _)| *has).map(|(_, word)| word.to_owned());
    let words: Vec<String> = words.chain(effort).collect();
    let marks = [(!row.is_allowed, " (not allowed)"), (row.is_reachable == Some(false), " (no answer)")];
    let marks: String = marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| mark).collect();
    let (window, price) = (window_text(row.window), price_text(row.price));
    let words = if words.is_empty() { "text alone".to_owned() } else { words.join(", ") };
    format!("{}  {window}, {price}; {words}{marks}", row.name)
}

fn window_text(window: u64) -> String {
    format!("{window} tokens")
}

fn price_text(price: Option<loci_core::model::Price>) -> String {
    match price {
        Some(price) => format!("${} in, ${} out per million tokens", price.input, price.output),
        None => "price unknown".to_owned(),
    }
}
