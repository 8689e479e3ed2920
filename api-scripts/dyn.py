import re,subprocess,sys
N=['Tool','Model','Approver','Person','ToolSource','Sandbox','ProcessHandle']
files=sys.argv[1:] or subprocess.run("git ls-files '*.rs'; echo crates/toolwright-core/src/erased.rs",shell=True,capture_output=True,text=True).stdout.split()
for f in files:
    if f.startswith('crates/toolwright-macros/src') or f.endswith('erased.rs'): continue
    t=open(f).read(); o=t
    used=[n for n in N if re.search(r'\bdyn %s\b'%n,t)]
    if not used: continue
    for n in used: t=re.sub(r'\bdyn %s\b'%n,'Dyn'+n,t)
    for n in used:
        d='Dyn'+n
        code=re.sub(r'(?m)^\s*//.*$','',t)
        if not re.search(r'\b%s\b'%d,code): continue
        # import of n
        body=re.sub(r'(?ms)^\s*(?:pub(?:\([^)]*\))? )?use [^;]*;','',code)
        still=re.search(r'(?<![\w:])%s\b'%n,body)
        pats=list(re.finditer(r'(?ms)^(?P<ind>\s*)use (?P<p>[^;]*?\b%s\b[^;]*);'%n,t))
        if re.search(r'use [^;]*\b%s\b'%d,t): continue
        if not pats:
            print('no import',f,n); continue
        if f.startswith('crates/toolwright-core/src'):
            m=pats[0]
            if not still:
                new=re.sub(r'\b%s\b,?\s*'%n,'',m.group(0),1)
                # drop if simple path
                if re.search(r'use crate::\w+::;',new) or not re.search(r'\w+::(\{.*\w.*\}|\w+);',new,re.S): new=''
                t=t.replace(m.group(0),new,1)
            # add import after first use crate::
            k=re.search(r'(?m)^use crate::',t)
            t=t[:k.start()]+'use crate::erased::%s;\n'%d+t[k.start():]
            continue
        m=pats[0]
        s=m.group(0)
        if still: new=re.sub(r'\b%s\b'%n,'%s, %s'%(d,n),s,1) if '{' in s else None
        else: new=re.sub(r'\b%s\b'%n,d,s,1)
        if new is None:
            # single path use a::b::N;
            new=re.sub(r'\b%s;$'%n,'{%s, %s};'%(d,n),s)
        t=t.replace(s,new,1)
    if t!=o: open(f,'w').write(t); print(f,used)
