//! `loci models`: which models there are, and whether one answers.

use loci_app::UserError;
use loci_app::providers::{CheckedModel, ListedRow, check_model, list_models};
use loci_stdx::Env;
use serde_json::{Value, json};

use crate::config::write;

#[derive(Debug, clap::Args)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    verb: ModelsVerb,
}

#[derive(Debug, clap::Subcommand)]
enum ModelsVerb {
    /// List the models of all providers, each with its window and price.
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
            let rows = list_models(env, settings.clone())?;
            let text = match json {
                true => format!("{}\n", Value::Array(rows.iter().map(to_json).collect())),
                false => rows.iter().map(|row| format!("{}\n", to_line(row))).collect(),
            };
            write(&text)?;
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
    json!({"name": row.name, "provider": row.provider, "protocol": row.protocol, "window": row.window,
        "maxOutput": row.max_output, "price": price})
}

fn to_line(row: &ListedRow) -> String {
    format!("{}  {}, {}", row.name, window_text(row.window), price_text(row.price))
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
