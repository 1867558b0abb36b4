import { connect, type Socket } from 'node:net';
import { systemRandom } from '../../../src/platform/random.ts';
import { createSecret } from '../../../src/secrets/secret-format.ts';

// node tests/chaos/attacks/attack.ts <port> <ops port> <secret> <milliseconds>: everything at once that one client, one address or one key
// can do to keep others from being served, against a gateway of this machine. Ends by itself.

const [port, opsPort, secret, lastsMs] = [
  Number(process.argv[2]),
  Number(process.argv[3]),
  process.argv[4] ?? '',
  Number(process.argv[5]),
];

/** What an attacker does on one connection. Called with each connection, and again for one that was closed. */
type Attack = (socket: Socket) => void;

const HEAD_LIMIT = 15_000;
const authorized = (line: string, ...lines: readonly string[]) =>
  [`${line} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${secret}`, ...lines, '', ''].join('\r\n');

/** Sends the bytes, and again whenever something was received. */
function repeat(bytes: () => string): Attack {
  return (socket) => {
    socket.on('data', () => {
      if (!socket.writableNeedDrain) socket.write(bytes());
    });
    socket.write(bytes());
  };
}

/** Reads a part of what arrives, once a second. */
const readSlowly: Attack = (socket) => {
  socket.pause();
  const timer = setInterval(() => socket.read(64 * 1024), 1000);
  socket.once('close', () => clearInterval(timer));
  socket.write(authorized('GET /large'));
};

/** Sends a byte of a body now and then. */
const sendSlowly: Attack = (socket) => {
  socket.resume().write(authorized('POST /slow', 'Content-Length: 1000000'));
  const timer = setInterval(() => socket.write('x'), 1500);
  socket.once('close', () => clearInterval(timer));
};

const unauthenticated = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const ATTACKS: readonly { readonly connections: number; readonly to: number; readonly attack: Attack }[] = [
  // Thousands of small requests sent ahead.
  { connections: 12, to: port, attack: repeat(() => unauthenticated.repeat(2000)) },
  // One key that holds as many backend connections as it gets.
  { connections: 256, to: port, attack: readSlowly },
  { connections: 256, to: port, attack: repeat(() => authorized('GET /hang')) },
  { connections: 50, to: port, attack: sendSlowly },
  // One key that upgrades as many connections as it may.
  {
    connections: 1200,
    to: port,
    attack: repeat(() => authorized('GET /ws', 'Connection: Upgrade', 'Upgrade: websocket')),
  },
  // One address that tries secrets of the right form.
  {
    connections: 500,
    to: port,
    attack: repeat(
      () => `GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${createSecret('tg', systemRandom)}\r\n\r\n`,
    ),
  },
  // Heads that are dear to read.
  {
    connections: 10,
    to: port,
    attack: repeat(() => `GET / HTTP/1.1\r\nHost: a\r\n${'a:\r\n'.repeat(HEAD_LIMIT / 4)}\r\n`),
  },
  {
    connections: 10,
    to: port,
    attack: repeat(() => `GET /${'%25'.repeat(HEAD_LIMIT / 3)} HTTP/1.1\r\nHost: a\r\n\r\n`),
  },
  // Half-sent heads on the ops port.
  {
    connections: 100,
    to: opsPort,
    attack: (socket) => void socket.resume().write('GET /livez HTTP/1.1\r\nHo'),
  },
];

/** A closed connection is made again after this time. Milliseconds. */
const AGAIN_MS = 200;
const sockets = new Set<Socket>();
let isOver = false;

function open(to: number, attack: Attack): void {
  if (isOver) return;
  const socket = connect(to, '127.0.0.1');
  sockets.add(socket);
  socket.on('error', () => {});
  socket.once('connect', () => attack(socket));
  socket.once('close', () => {
    sockets.delete(socket);
    setTimeout(open, AGAIN_MS, to, attack).unref();
  });
}

for (const { connections, to, attack } of ATTACKS) {
  for (let i = 0; i < connections; i += 1) open(to, attack);
}
setTimeout(() => {
  isOver = true;
  for (const socket of sockets) socket.destroy();
}, lastsMs);
