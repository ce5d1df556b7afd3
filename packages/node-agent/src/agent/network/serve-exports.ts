/** The socket by which the switch of this node reaches the server of exports, wherever the cluster says that this is then. */
import { mkdir } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { EXPORTER_PORT } from '@coracle/kubevirt/rules/export/exporter-pod';
import { joinStreams } from '../../network/join-streams.ts';
import { dialHere } from '../../network/switch/peer-links.ts';
import { SWITCH_FILES } from '../../network/switch/switch-files.ts';
import type { AgentEnvironment } from '../environment.ts';
import { listenUnix } from '../migration/unix-listener.ts';
import { exporterEndpoint } from '../requests/exporter-port.ts';

/** `open`: from then on it listens, until the agent stops. Nobody but this user reaches it. */
export function createExportsSocket(
  { client, log, signal }: Pick<AgentEnvironment, 'client' | 'log' | 'signal'>,
  dataDir: string,
): { open(): void } {
  const directory = join(dataDir, SWITCH_FILES.directory);
  const endpoint = exporterEndpoint(client);
  const serve = async (socket: Socket): Promise<void> => {
    try {
      const far = await dialHere(await endpoint(EXPORTER_PORT));
      if (socket.destroyed) far.destroy();
      else joinStreams(socket, far);
    } catch (error) {
      log.warn('a guest does not reach the server of exports', { error: (error as Error).message });
      socket.destroy();
    }
  };
  const listen = async (): Promise<void> => {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const listener = await listenUnix(directory, SWITCH_FILES.exports, (socket) => void serve(socket), {
      paused: true,
      halfOpen: true,
    });
    const close = (): void => void listener.close();
    if (signal.aborted) close();
    else signal.addEventListener('abort', close, { once: true });
  };
  let isOpen = false;
  return {
    open() {
      if (isOpen) return;
      isOpen = true;
      listen().catch((error: Error) => {
        isOpen = false;
        log.warn('exports cannot be served to guests', { error: error.message });
      });
    },
  };
}
