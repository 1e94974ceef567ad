/** The vault's tables of a server that has ended, read with none of the program's code except its segment format. */
import { Database } from "bun:sqlite";
import { getLoadablePath } from "sqlite-vec";
import { Segment } from "../../src/vault/segments/segment.ts";

const PER_DOCUMENT = 65_536;

interface DocumentRow {
  readonly key: number;
  readonly id: string;
  readonly scope_id: number;
  readonly state: string;
  readonly chunks: number;
  readonly pages: number;
  readonly characters: number;
}

/** What is wrong in the vault's tables, in words; empty if all is well. Every document must be live. */
export function vaultFaults(path: string): string[] {
  const file = new Database(path, { readonly: true });
  file.loadExtension(getLoadablePath());
  try {
    return [...faultsOf(file)];
  } finally {
    file.close();
  }
}

function* faultsOf(file: Database): Generator<string, void> {
  const numbers = (sql: string) =>
    file
      .query<{ n: number }, []>(sql)
      .all()
      .map(({ n }) => n);
  const documents = file.query<DocumentRow, []>("SELECT * FROM vault_documents ORDER BY key").all();
  const byKey = new Map(documents.map((document) => [document.key, document]));
  for (const { id, state } of documents) if (state !== "live") yield `${id} is ${state}`;

  const chunks = new Set(numbers("SELECT key AS n FROM vault_chunks"));
  const pages = new Set(numbers("SELECT key AS n FROM vault_pages"));
  for (const [name, keys] of [
    ["passage", chunks],
    ["page", pages],
  ] as const) {
    for (const key of keys) {
      if (!byKey.has(Math.floor(key / PER_DOCUMENT))) yield `${name} ${key} has no document`;
    }
  }
  for (const document of documents) {
    yield* placesMissing("passage", document, document.chunks, chunks);
    yield* placesMissing("page", document, document.pages, pages);
    const text = file
      .query<{ text: string; start: number }, [number, number]>(
        'SELECT text, "start" FROM vault_pages WHERE key BETWEEN ? AND ? ORDER BY key',
      )
      .all(document.key * PER_DOCUMENT, document.key * PER_DOCUMENT + PER_DOCUMENT - 1);
    let length = 0;
    for (const page of text) {
      if (page.start !== length) yield `a page of ${document.id} begins at ${page.start}, not ${length}`;
      length += page.text.length;
    }
    if (length !== document.characters)
      yield `${document.id} has ${length} characters of ${document.characters}`;
  }
  yield* segmentFaults(file, byKey, chunks);
  yield* vectorFaults(file, chunks);
  for (const key of numbers("SELECT document_key AS n FROM vault_metadata")) {
    if (!byKey.has(key)) yield `metadata of ${key} has no document`;
  }
  const used = new Set(documents.map(({ scope_id }) => scope_id));
  for (const id of numbers("SELECT id AS n FROM vault_scopes"))
    if (!used.has(id)) yield `scope ${id} is unused`;
  const check = file.query<{ integrity_check: string }, []>("PRAGMA integrity_check").all();
  if (check[0]?.integrity_check !== "ok") yield `integrity: ${JSON.stringify(check)}`;
  if (file.query("PRAGMA foreign_key_check").all().length > 0) yield "a foreign key is broken";
}

function* placesMissing(name: string, { id, key }: DocumentRow, count: number, keys: ReadonlySet<number>) {
  for (let place = 0; place < count; place++) {
    if (!keys.has(key * PER_DOCUMENT + place)) yield `${id} lacks ${name} ${place}`;
  }
  if (keys.has(key * PER_DOCUMENT + count)) yield `${id} has more than ${count} of ${name}`;
}

/** Each passage is in exactly one live segment of its document's scope, and the segments contain nothing else. */
function* segmentFaults(
  file: Database,
  documents: ReadonlyMap<number, DocumentRow>,
  chunks: ReadonlySet<number>,
) {
  const rows = file
    .query<{ id: number; scope_id: number; live: number; chunks: number; data: Uint8Array }, []>(
      "SELECT id, scope_id, live, chunks, data FROM vault_segments",
    )
    .all();
  const indexed = new Set<number>();
  for (const row of rows) {
    if (row.live !== 1) yield `segment ${row.id} is not live`;
    const { keys } = new Segment(row.data);
    if (keys.length !== row.chunks) yield `segment ${row.id} says ${row.chunks}, holds ${keys.length}`;
    for (const key of keys) {
      if (indexed.has(key)) yield `passage ${key} is indexed twice`;
      indexed.add(key);
      if (!chunks.has(key)) yield `segment ${row.id} holds passage ${key}, which is not there`;
      if (documents.get(Math.floor(key / PER_DOCUMENT))?.scope_id !== row.scope_id)
        yield `passage ${key} is indexed in another scope`;
    }
  }
  for (const key of chunks) if (!indexed.has(key)) yield `passage ${key} is in no segment`;
}

/** Each passage has a vector in the spaces that are written, or is queued for one; and each vector has a passage. */
function* vectorFaults(file: Database, chunks: ReadonlySet<number>) {
  const spaces = file
    .query<{ id: number; dimensions: number; state: string }, []>(
      "SELECT id, dimensions, state FROM vault_spaces",
    )
    .all();
  const pendingOf = file.query<{ chunk_key: number }, [number]>(
    "SELECT chunk_key FROM vault_pending WHERE space_id = ?",
  );
  for (const { id, dimensions, state } of spaces) {
    const pending = new Set(pendingOf.all(id).map(({ chunk_key }) => chunk_key));
    const table = `vault_vectors_${id}`;
    const vectors = new Set(
      dimensions === 0
        ? []
        : file
            .query<{ passage: number }, []>(`SELECT passage FROM ${table}`)
            .all()
            .map(({ passage }) => passage),
    );
    for (const key of vectors) if (!chunks.has(key)) yield `vector ${key} of space ${id} has no passage`;
    for (const key of pending) if (!chunks.has(key)) yield `${key} is pending in space ${id}, and not there`;
    if (state === "kept" || state === "dropped") continue;
    for (const key of chunks) {
      if (!vectors.has(key) && !pending.has(key)) yield `passage ${key} has no vector in space ${id}`;
    }
    if (dimensions > 0) yield* blockFaults(file, table);
  }
}

/** vec0's own tables: as many slots are taken as there are rows, and every block has its vectors. */
function* blockFaults(file: Database, table: string) {
  const blocks = file
    .query<{ chunk_id: number; validity: Uint8Array }, []>(`SELECT chunk_id, validity FROM ${table}_chunks`)
    .all();
  let taken = 0;
  for (const { validity } of blocks)
    for (const byte of validity) taken += byte.toString(2).replaceAll("0", "").length;
  const rows = file.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}_rowids`).get()?.n;
  if (taken !== rows) yield `${table}: ${taken} places are taken by ${rows} rows`;
  const stored = file.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}_vector_chunks00`).get()?.n;
  if (stored !== blocks.length) yield `${table}: ${blocks.length} blocks, ${stored} with vectors`;
}
