/** What other packages use of this one: nothing else is theirs to import. */
export { type Clock, systemClock } from './clock/clock.ts';
export type { FakeClock } from './clock/fake-clock.ts';
export { nextTurn } from './clock/next-turn.ts';
export { BodyBudget } from './http/body-budget.ts';
export { byteSocket } from './http/byte-socket.ts';
export { type Compressor, type GzipBlock, gzipBlock, gzipOf, storedBlock } from './http/gzip-blocks.ts';
export { endToEnd, HOP_BY_HOP } from './http/hop-by-hop.ts';
export { createHttpsTransport, type HttpsTransport } from './http/https-transport.ts';
export { inProcessPeer, isInProcess } from './http/in-process-peer.ts';
export { createMessagePair } from './http/message-pair.ts';
export { publicKeyHash, readPeerChain } from './http/peer-chain.ts';
export {
  type ApiHandler,
  type ApiRequest,
  type ApiResponse,
  type BodyOutcome,
  type ByteSink,
  type ByteStream,
  type MessageSocket,
  NEVER,
  NO_BYTES,
  type Peer,
  type PeerCertificate,
  redirected,
  type StreamDocument,
} from './http/seam.ts';
export { startTlsServer, type TlsServer } from './http/tls-server.ts';
export { createLogger, formatRecord, type Logger, type LogLevel, lineJson, silentLogger } from './log/log.ts';
export { createCounter, MAX_SERIES } from './metrics/counter.ts';
export { createHistogram, Distribution, type Histogram } from './metrics/histogram.ts';
export {
  familyText,
  type HistogramFamily,
  type Labels,
  type MetricFamily,
  type ValueFamily,
} from './metrics/metric-family.ts';
export { type AddressRange, addressRange } from './oci/address-range.ts';
export {
  addressesOf,
  type CheckedResponse,
  checkedRequest,
  ForbiddenAddress,
  type Resolve,
  resolveName,
} from './oci/checked-request.ts';
export {
  defaultPullPolicy,
  type ImageReference,
  isDigest,
  isLocal,
  parseReference,
  referenceText,
} from './oci/reference.ts';
export {
  type Credentials,
  createRegistryClient,
  type Descriptor,
  type RegistryClient,
  registryOrigin,
} from './oci/registry-client.ts';
export { RegistryError } from './oci/registry-error.ts';
export { LAYER_READ, type LayerEntry, normalEntryName, removes, walkLayer } from './oci/walk-layer.ts';
export { bootId, findProcesses, identify, isRunning, type ProcessIdentity, signalProcess } from './process/identity.ts';
export { isProgram, programPath } from './process/program.ts';
export { plainEnv, type RunResult, run } from './process/run.ts';
export { runConfined } from './process/run-confined.ts';
export { runForeground } from './process/run-foreground.ts';
export { socketToFile } from './process/socket-to-file.ts';
export { type Exit, INPUT_FD, spawnDetached } from './process/spawn-detached.ts';
export { terminate, waitGone } from './process/terminate.ts';
export { type BackoffPolicy, backoffDelay, createBackoff } from './retry/backoff.ts';
export { retry } from './retry/retry.ts';
export { abortable, aborted } from './signal/abortable.ts';
export { createDeferred, type Deferred } from './signal/deferred.ts';
export { createLinkedController, type LinkedController } from './signal/linked-controller.ts';
