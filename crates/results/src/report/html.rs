//! One file of HTML around a document: nothing in it is fetched from anywhere.

use super::Document;

/// What draws the page, as `make viewer` has built it.
const SCRIPT: &str = include_str!("viewer.js");
/// How it looks.
const STYLE: &str = include_str!("viewer.css");
/// Under which terms the libraries in it come.
const NOTICE: &str = include_str!("NOTICE.txt");

/// The page of a document.
///
/// # Panics
/// Never: a document is made of numbers, text and lists.
pub fn page(document: &Document) -> String {
    let (title, headline) = match document {
        Document::Run(run) => (&run.name, &run.headline),
        Document::Grid(grid) => (&grid.name, &grid.headline),
    };
    let json = serde_json::to_string(document).expect("a document is plain data");
    // What is between the tags must not end them.
    let json = json.replace('<', "\\u003c");
    let notice = NOTICE.replace("--", "- -");
    format!(
        "<!doctype html>\n\
         <html lang=\"en\">\n\
         <head>\n\
         <meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title} - xoff report</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <style>{STYLE}</style>\n\
         </head>\n\
         <body>\n\
         <main id=\"page\">\n\
         <h1>{title}</h1>\n\
         <p class=\"headline\">{headline}</p>\n\
         <noscript><p>Charts, tables and the drawing need JavaScript, which is switched off. Nothing is \
         fetched from anywhere: all of it is in this file.</p></noscript>\n\
         </main>\n\
         <script type=\"application/json\" id=\"document\">{json}</script>\n\
         <!--\n{notice}-->\n\
         <script>{SCRIPT}</script>\n\
         </body>\n\
         </html>\n",
        title = escaped(title),
        headline = escaped(headline),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundle_cannot_end_the_tags_around_it() {
        assert!(!SCRIPT.to_ascii_lowercase().contains("</script"));
        assert!(!SCRIPT.contains("<!--"));
        assert!(!STYLE.to_ascii_lowercase().contains("</style"));
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    }
}
