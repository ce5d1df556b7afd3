/** The user's own kubeconfig, while a control plane runs: a convenience, so that trouble with it is reported and stops nothing. */
import { isIP } from 'node:net';
import {
  type ClusterAccess,
  type ContextEntries,
  contextEntries,
  editUserKubeconfig,
  mergeKubeconfig,
  unmergeKubeconfig,
} from '../config/kubeconfig.ts';
import { listenError } from './listen-error.ts';

/** What a line of the log begins with that whoever starts a control plane in the background shall read. */
export const WARNING = 'warning: ';

type Note = (text: string) => void;

/**
 * Puts the cluster into the file, and warns where its context led to another control plane that runs. Resolves to what takes it out
 * again, and puts back what it replaced where that still runs.
 */
export async function joinKubeconfig(note: Note, path: string, access: ClusterAccess): Promise<() => Promise<void>> {
  let before: ContextEntries | undefined;
  change(note, path, (text) => {
    before = contextEntries(text, access.name);
    return mergeKubeconfig(text, access);
  });
  const another = before && before.server !== access.server ? before : undefined;
  const stillRuns = (): Promise<boolean> => isListening(another?.server);
  if (await stillRuns())
    note(
      `${WARNING}context ${access.name} of ${path} led to ${another?.server}, which still runs: its commands take --data-dir DIR from now on (--cluster-name NAME gives this one a context of its own)`,
    );
  return async () => {
    const back = (await stillRuns()) ? another : undefined;
    change(note, path, (text) => unmergeKubeconfig(text, access, back));
  };
}

function change(note: Note, path: string, edit: (text: string) => string): void {
  try {
    editUserKubeconfig(path, edit);
  } catch (error) {
    note(`${WARNING}the user's kubeconfig was not changed: ${(error as Error).message}`);
  }
}

/** Whether a program of this host listens where the URL says. */
async function isListening(server: unknown): Promise<boolean> {
  const { hostname, port } = URL.parse(String(server)) ?? {};
  return hostname !== undefined && isIP(hostname) === 4 && (await listenError(Number(port), hostname)) === 'EADDRINUSE';
}
