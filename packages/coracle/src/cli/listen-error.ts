/** Whether a port can be listened on: by trying it. */
import { createServer } from 'node:net';

/** The code of the error that listening there ends with; undefined when it can be done. */
export const listenError = (port: number, address: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
    server.listen(port, address, () => server.close(() => resolve(undefined)));
  });
