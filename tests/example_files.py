"""Files of several formats, as text."""

PREFLIB = """# FILE NAME: {name}
# TITLE: Drinks
# DATA TYPE: {kind}
# NUMBER ALTERNATIVES: {items}
# NUMBER VOTERS: {voters}
# NUMBER UNIQUE ORDERS: {rows}
{more}{names}
{body}
"""


def preflib(kind, rows, items=("tea", "milk", "beer"), first=1, more=""):
    names = "\n".join(f"# ALTERNATIVE NAME {number}: {item}" for number, item in enumerate(items, start=first))
    voters = sum(int(row.split(":")[0]) for row in rows)
    body = "\n".join(rows)
    text = PREFLIB.format(
        name=f"votes.{kind}",
        kind=kind,
        items=len(items),
        voters=voters,
        rows=len(rows),
        names=names,
        body=body,
        more=more,
    )
    return text.replace("UNIQUE ORDERS", "UNIQUE PREFERENCES") if kind == "cat" else text


DOMINION = {
    "Version": "5.10",
    "Sessions": [
        {
            "RecordId": 1,
            "Original": {
                "IsCurrent": False,
                "Cards": [{"Contests": [{"Id": 7, "Marks": [{"CandidateId": 2, "Rank": 1, "IsVote": True}]}]}],
            },
            "Modified": {
                "IsCurrent": True,
                "Cards": [
                    {
                        "Contests": [
                            {
                                "Id": 7,
                                "Marks": [
                                    {"CandidateId": 1, "Rank": 1, "IsVote": True},
                                    {"CandidateId": 2, "Rank": 2, "IsVote": True, "IsAmbiguous": False},
                                    {"CandidateId": 3, "Rank": 3, "IsVote": False},
                                ],
                            },
                            {"Id": 8, "Marks": [{"CandidateId": 9, "Rank": 1, "IsVote": True}]},
                        ]
                    }
                ],
            },
        },
        {
            "RecordId": 2,
            "Original": {
                "IsCurrent": True,
                "Contests": [
                    {
                        "Id": 7,
                        "Marks": [
                            {"CandidateId": 3, "Rank": 1, "IsVote": True},
                            {"CandidateId": 1, "Rank": 2, "IsVote": True},
                            {"CandidateId": 2, "Rank": 2, "IsVote": True},
                        ],
                    }
                ],
            },
        },
    ],
}
CONTESTS = {"List": [{"Id": 7, "Description": "Mayor"}, {"Id": 8, "Description": "Clerk"}]}
CANDIDATES = {
    "List": [{"Id": number, "Description": name} for number, name in ((1, "Ann"), (2, "Bob"), (3, "Cy"), (9, "Dee"))]
}


def nist_mark(selection, rank, **more):
    return {"ContestSelectionId": selection, "SelectionPosition": [{"HasIndication": "yes", "Rank": rank, **more}]}


NIST = {
    "@type": "CVR.CastVoteRecordReport",
    "Election": [
        {
            "Candidate": [{"@id": "c1", "Name": "Ann"}, {"@id": "c2", "Name": "Bob"}],
            "Contest": [
                {
                    "@id": "k1",
                    "Name": "Mayor",
                    "ContestSelection": [
                        {"@id": "s1", "CandidateIds": ["c1"]},
                        {"@id": "s2", "CandidateIds": ["c2"]},
                        {"@id": "s3", "IsWriteIn": True},
                    ],
                }
            ],
        }
    ],
    "CVR": [
        {
            "CurrentSnapshotId": "new",
            "CVRSnapshot": [
                {"@id": "old", "CVRContest": [{"ContestId": "k1", "CVRContestSelection": [nist_mark("s1", 1)]}]},
                {
                    "@id": "new",
                    "CVRContest": [
                        {"ContestId": "k1", "CVRContestSelection": [nist_mark("s2", 1), nist_mark("s1", 2)]}
                    ],
                },
            ],
        },
        {
            "CurrentSnapshotId": "a",
            "CVRSnapshot": [
                {
                    "@id": "a",
                    "CVRContest": [
                        {
                            "ContestId": "k1",
                            "CVRContestSelection": [nist_mark("s3", 1), nist_mark("s1", 2, IsAllocable="no")],
                        }
                    ],
                }
            ],
        },
    ],
}
SCOTTISH = """4,3
12,1,2,3,
5,4,
1,2,1,,
"Candidate 1","Ann Ash","Labour (Lab)",
"Candidate 2","Bob Birch","Green (Grn)",
"Candidate 3","Cy Cedar","SNP (SNP)",
"Candidate 4","Dee Dogwood","Independent (Ind)",
"Ward 4 - Hill",
"""
BLT = """# council
4 2
-2
3 1 3 4 0
4 1 3 2 0   # a comment
2 4 1=3 0
1 2 0
5 0
0
"Adam A."
"Basil"
"Charlotte"
"Donald"
"By-election"
"""
DOMINION_CSV = """City Election 2023,5.10.50.85,,,,,,,,,,,
,,,,"Mayor (Number of positions=1, Number of ranks=2)","Mayor (Number of positions=1, Number of ranks=2)",\
"Mayor (Number of positions=1, Number of ranks=2)","Mayor (Number of positions=1, Number of ranks=2)",\
"Mayor (Number of positions=1, Number of ranks=2)","Mayor (Number of positions=1, Number of ranks=2)",\
Clerk (Vote For=1),Clerk (Vote For=1),Bonds (Vote For=1)
,,,,Ann Ash(1),Bob(1),Write-in(1),Ann Ash(2),Bob(2),Write-in(2),Cy,Dee,Yes
CvrNumber,TabulatorNum,ImprintedId,PrecinctPortion,DEM,REP,,DEM,REP,,,,
1,3,="3-1-1",North,1,0,0,0,1,0,1,0,1
2,3,="3-1-2",North,0,1,0,0,0,0,0,1,0
3,3,="3-1-3",South,1,1,0,0,0,1,1,0,0
4,3,="3-1-4",South,,,,,,,1,0,0
5,3,="3-1-5",South,0,0,0,0,0,0,0,1,0
"""
