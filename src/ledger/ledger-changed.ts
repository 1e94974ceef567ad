/** The store holds something else than what the ledger's key has signed: somebody has changed the file. */
export class LedgerChanged extends Error {
  override readonly name = "LedgerChanged";
  /** The entry that it was seen at, when there is one. */
  readonly seq: number | undefined;

  constructor(message: string, seq?: number) {
    super(message);
    this.seq = seq;
  }
}
