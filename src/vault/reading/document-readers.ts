import type { ReadingProtocol } from "../../reading/protocol.ts";
import { ReaderProcess } from "../../reading/reader.ts";
import { ReaderPool, type ReaderPoolOptions } from "../../reading/readers.ts";
import type { PreparedDocument, PrepareRequest } from "../messages.ts";
import { AnswerReader } from "./answer.ts";
import { encodeRequest } from "./request.ts";

const DOCUMENTS: ReadingProtocol<PrepareRequest, PreparedDocument> = {
  encodeRequest,
  openAnswer: () => new AnswerReader(),
};

/** A process that reads documents for the vault. */
export class DocumentReader extends ReaderProcess<PrepareRequest, PreparedDocument> {
  constructor(command: readonly string[]) {
    super(command, DOCUMENTS);
  }
}

export type DocumentReadersOptions = Omit<ReaderPoolOptions<PrepareRequest, PreparedDocument>, "protocol">;

/** The processes that read documents for the vault. */
export class DocumentReaders extends ReaderPool<PrepareRequest, PreparedDocument> {
  constructor(options: DocumentReadersOptions) {
    super({ ...options, protocol: DOCUMENTS });
  }
}
