import { OperatorError } from "../../../base/errors.ts";
import { definitionContext } from "../../../connectors/definition/stored.ts";
import type { CopiedRow, CopiedTable } from "../../../store/copying/tables.ts";
import { open, SealDamaged, seal, WrongKey } from "../../../store/sealed-value.ts";
import { RowSeals } from "../../../store/seals/seals.ts";
import { SEALED_NAMES, type SealedName } from "../../../store/seals/tables.ts";
import { hasIntactRow, type ReadRows } from "../../../store/seals/unsealed-rows.ts";
import { findSecretKey, type SealingKey } from "../../../store/secret-key.ts";

/**
 * The key that the rows of a data directory are sealed with: the master key, or else the one in `secrets.key`.
 * @throws OperatorError if no row is sealed with either
 */
export function sealingKeyOf(dataDir: string, masterKey: SealingKey, read: ReadRows): SealingKey {
  if (hasIntactRow(read, new RowSeals(masterKey.secret))) return masterKey;
  const key = findSecretKey({ masterKey: undefined, dataDir });
  if (key && hasIntactRow(read, new RowSeals(key.secret))) return key;
  throw new OperatorError(
    "no row of the data directory is sealed with secrets.key or with master_key",
    "restore the secrets.key that belongs to the directory, or set GATEHOUSE_MASTER_KEY to the key that it was used with; a directory of an earlier version must be started once with this one",
  );
}

/**
 * Seals rows and connectors' definitions with another key. A row whose seal does not fit is copied as it is, and is
 * not trusted in the copy either.
 */
export class Resealing {
  readonly #from: SealingKey;
  readonly #to: SealingKey;
  readonly #old: RowSeals;
  readonly #new: RowSeals;
  readonly #isSame: boolean;

  constructor(from: SealingKey, to: SealingKey) {
    this.#from = from;
    this.#to = to;
    this.#old = new RowSeals(from.secret);
    this.#new = new RowSeals(to.secret);
    this.#isSame = Buffer.compare(from.id, to.id) === 0;
  }

  /** A row as it is to be written. */
  change({ name }: CopiedTable, row: CopiedRow): CopiedRow {
    if (this.#isSame || !isSealedName(name) || !this.#old.isIntact(name, row)) return row;
    const changed = name === "connectors" ? this.#withDefinition(row) : row;
    return { ...changed, seal: this.#new.sealOf(name, changed) };
  }

  /** A definition that cannot be decrypted stays as it is: the connector reports that. */
  #withDefinition(row: CopiedRow): CopiedRow {
    const { workspace_id: workspaceId, name, definition } = row;
    if (typeof workspaceId !== "number" || typeof name !== "string" || !(definition instanceof Uint8Array))
      return row;
    const context = definitionContext(workspaceId, name);
    try {
      return { ...row, definition: seal(this.#to, open(this.#from, definition, context), context) };
    } catch (error) {
      if (error instanceof SealDamaged || error instanceof WrongKey) return row;
      throw error;
    }
  }
}

function isSealedName(name: string): name is SealedName {
  return SEALED_NAMES.some((sealed) => sealed === name);
}
