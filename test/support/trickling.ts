/** Sends a body in chunks of one byte, as fast as they are taken, until it is killed. Arguments: host and port. */
import { connect } from "node:net";

const [host = "", port] = process.argv.slice(2);
const chunks = "1\r\na\r\n".repeat(20_000);
const socket = connect(Number(port), host);
const send = (): void => {
  while (socket.write(chunks));
};
socket.on("drain", send);
socket.write("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
send();
