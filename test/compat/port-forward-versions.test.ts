/** `kubectl port-forward` of the versions between the oldest and the newest. */
// test:full: versions of kubectl, each with large bodies.
import { BETWEEN, testPortForward } from './forward-ports.ts';

testPortForward(BETWEEN);
