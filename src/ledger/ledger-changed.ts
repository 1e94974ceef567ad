/** The store contains data other than what the ledger's key has signed: somebody has changed the file. */
export class LedgerChanged extends Error {
  override readonly name = "LedgerChanged";
  /** The entry at which it was found, if any. */
  readonly seq: number | undefined;

  constructor(message: string, seq?: number) {
    super(message);
    this.seq = seq;
  }
}
