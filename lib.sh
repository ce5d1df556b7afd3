watches () 
{ 
    kubectl get vm -w -o custom-columns=N:.metadata.name,S:.status.printableStatus,R:.status.ready,C:.status.created,F:.status.startFailure > /tmp/vmlc/wvm & echo $! > /tmp/vmlc/wp;
    kubectl get vmi -w -o custom-columns=N:.metadata.name,U:.metadata.uid,D:.metadata.deletionTimestamp,S:.status.phase,R:.status.reason > /tmp/vmlc/wvmi & echo $! > /tmp/vmlc/wp2
}
show () 
{ 
    kill $(cat /tmp/vmlc/wp) $(cat /tmp/vmlc/wp2);
    cat /tmp/vmlc/wvm /tmp/vmlc/wvmi
}
watches() { kubectl get vm -w -o custom-columns=N:.metadata.name,S:.status.printableStatus,R:.status.ready,C:.status.created,F:.status.startFailure,Q:.status.stateChangeRequests > /tmp/vmlc/wvm 2>&1 & WP1=$!;  kubectl get vmi -w -o custom-columns=N:.metadata.name,U:.metadata.uid,D:.metadata.deletionTimestamp,S:.status.phase,R:.status.reason > /tmp/vmlc/wvmi 2>&1 & WP2=$!; }
show() { kill $WP1 $WP2; cat /tmp/vmlc/wvm; cut -c1-14,40-200 /tmp/vmlc/wvmi; }
down() { cd /work/main; ./coracle down --data-dir $A "$@"; }
up() { cd /work/main; ./coracle up --data-dir $A --port ${PORT:-0} --detach --no-merge-kubeconfig "$@"; URL=$(sed -n 's/.*server: //p' $KUBECONFIG); }
