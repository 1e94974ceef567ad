import type { JSX } from "preact";

/** Where a document comes from: a link to pages of the web alone, and else a text. Whoever wrote it may have written anything. */
export function SourceLink({ uri }: { readonly uri: string }): JSX.Element {
  if (!isWeb(uri)) return <span class="break">{uri}</span>;
  return (
    <a class="break" href={uri} rel="noreferrer noopener" target="_blank">
      {uri}
      <span class="unseen"> (opens in a new tab)</span>
    </a>
  );
}

function isWeb(uri: string): boolean {
  try {
    const { protocol } = new URL(uri);
    return protocol === "https:" || protocol === "http:";
  } catch {
    return false;
  }
}
