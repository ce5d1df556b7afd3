/** `kubectl port-forward` and `kubectl proxy` of the oldest and the newest version there is. */
import { ENDS, testPortForward, testProxy } from './forward-ports.ts';

testPortForward(ENDS);
testProxy(ENDS);
