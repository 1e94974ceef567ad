import type { JSX } from "preact";
import { Card } from "../../parts/page.tsx";

/** Explains what a check in a web page can and cannot show. */
export function WhatItShows(): JSX.Element {
  return (
    <Card title="What this shows, and what it cannot show">
      <p>
        Your browser downloads the entries as they were hashed, hashes them again, builds the tree, and checks
        the signatures. This reveals entries that were changed, moved, added or removed, and a ledger that no
        longer contains what this browser or a pasted checkpoint has seen.
      </p>
      <p>
        This page comes from the same server as the ledger, and a dishonest server could send a dishonest
        page. For an independent check, use one of these.
      </p>
      <ul class="ledger-list">
        <li>
          <code>gatehouse ledger verify --bundle FILE</code>, with a program from another source, verifies an
          Article 14 bundle without a server or network.
        </li>
        <li>
          <code>verify.html</code>, included in each bundle, does the same in a browser, from a file.
        </li>
      </ul>
      <p>
        The holder of the signing key could rebuild the whole ledger, and no check of its entries can show
        that. Only a checkpoint kept elsewhere can: in this browser, in <code>checkpoint_file</code>, or by
        your webhook.
      </p>
    </Card>
  );
}
