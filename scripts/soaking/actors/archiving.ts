import type { Life } from "../life.ts";
import type { World } from "../world.ts";

/** A document from its writer's point of view. A text of null means that the document does not exist. */
export interface Document {
  readonly id: string;
  /** The texts that it may have now: the last acknowledged one, and all that were requested since. */
  may: (string | null)[];
}

/** Writes, replaces and removes documents, and searches for them. */
export async function keepDocuments(world: World, life: Life): Promise<void> {
  while (!life.isOver) {
    const isNew = world.documents.length < 3 || world.random() < 0.5;
    const known = world.documents[Math.floor(world.random() * world.documents.length)];
    if (isNew || !known) {
      const document: Document = { id: `soak-${world.documents.length}`, may: [null] };
      world.documents.push(document);
      await write(world, life, document);
    } else if (world.random() < 0.3) await remove(life, known);
    else await write(world, life, known);
    const query = `mark${Math.floor(world.random() * 100)}`;
    await life.call("POST", "/v1/vault/search", { body: { query } });
    await life.pause(world.random() * 150);
  }
}

async function write({ random }: World, life: Life, document: Document): Promise<void> {
  const text = `mark${Math.floor(random() * 100)} ${random().toString(36).slice(2)} stands here`;
  document.may.push(text);
  const body = { id: document.id, title: document.id, text, scope: "shelf" };
  const answer = await life.call("POST", "/v1/vault/documents", { body });
  if (answer?.status === 200 || answer?.status === 201) document.may = [text];
}

async function remove(life: Life, document: Document): Promise<void> {
  document.may.push(null);
  const answer = await life.call("DELETE", `/v1/vault/documents/${document.id}`);
  if (answer?.status === 204) document.may = [null];
}
