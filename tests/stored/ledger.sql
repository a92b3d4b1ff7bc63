BEGIN TRANSACTION;
CREATE TABLE tacit_accounts (
	dataset TEXT NOT NULL, 
	analyst TEXT NOT NULL, 
	granted TEXT NOT NULL, 
	spent TEXT NOT NULL, 
	policy TEXT, 
	first_grant INTEGER, 
	PRIMARY KEY (dataset, analyst)
);
INSERT INTO "tacit_accounts" VALUES('rooms','','5','1','10e649f5d788c1611a82c22cdc1b51fe',1);
INSERT INTO "tacit_accounts" VALUES('rooms','ana','4','1',NULL,2);
INSERT INTO "tacit_accounts" VALUES('wards','','5','1499999999339/500000000000','7cc0ca6ffced0f3ac415af61ab7b522f',7);
INSERT INTO "tacit_accounts" VALUES('wards','ana','0','1499999999339/500000000000',NULL,NULL);
INSERT INTO "tacit_accounts" VALUES('town','','2','1','62a0541f54e8ba2c6fcd977d9779d8dc',14);
INSERT INTO "tacit_accounts" VALUES('town','ana','0','1',NULL,NULL);
CREATE TABLE tacit_coins (
	dataset TEXT NOT NULL, 
	secret TEXT NOT NULL, 
	seal TEXT NOT NULL, 
	PRIMARY KEY (dataset)
);
INSERT INTO "tacit_coins" VALUES('rooms','a09711c8352bb6937f3f6195950276bf0cdb32a4074d768df50d62d37c48c50d','9d97594c6674e8a2d04047a8703a26d1a52c278625c698079b43800b224a16a3');
CREATE TABLE tacit_contents (
	dataset TEXT NOT NULL, 
	line TEXT NOT NULL, 
	state TEXT NOT NULL, 
	stamp TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	sizes TEXT NOT NULL, 
	seal TEXT NOT NULL, 
	PRIMARY KEY (dataset, line, state)
);
INSERT INTO "tacit_contents" VALUES('rooms','da2661e916d785486d0e42daf10e28725e6d751bd9b292d7b55da2dfe2919443','shown','97dccf7cf126e46d2d92d7534e54b28ddbab1add9b3fdde06352f49b7af7f859','32c42c38635f022de6dd30c4d1ba14e2e01e236b18d55799fb7b4cdacd68a28d','07d558a47397df47','25dd98096f15426b4f347f5d78ab90fb73f5e5ebb0498cde9bfed7380328620e');
CREATE TABLE tacit_entries (
	number INTEGER NOT NULL, 
	time TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	dataset TEXT NOT NULL, 
	analyst TEXT, 
	epsilon TEXT NOT NULL, 
	policy TEXT, 
	policy_text TEXT, 
	what TEXT NOT NULL, 
	previous TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "tacit_entries" VALUES(1,'2026-11-18T20:45:10.753384+00:00','grant','rooms',NULL,'5','10e649f5d788c1611a82c22cdc1b51fe','# A Tacit policy: what must stay secret, about whom, and what the world already knows.
# Everything in this file is public. `tacit check` says in plain words what it protects and what not.
name: policy

# The values that a person''s record may have. Declared here, never read off the data.
domain:
  room: {categories: [a, b]}
  arrival: {categories: [early, late]}

# What a release must not give away.
secrets:
  attributes: [arrival]
  where: arrival == ''late''

# What is public about the data set anyway.
known: []

# Whether it is secret who is in the data: public or secret.
presence: public
','','0000000000000000000000000000000000000000000000000000000000000000','eef6dd51cda0b2af22297f6c66566869ae15d2ae527be7c51487a5568ac9086f');
INSERT INTO "tacit_entries" VALUES(2,'2026-11-18T20:45:10.758714+00:00','grant','rooms','ana','4',NULL,NULL,'','eef6dd51cda0b2af22297f6c66566869ae15d2ae527be7c51487a5568ac9086f','1fc95b8e5e95ea48051ff98c8c46fb2c0a13b5c715f7557a654e90a87201cb61');
INSERT INTO "tacit_entries" VALUES(3,'2026-11-18T20:45:10.819776+00:00','limits','rooms',NULL,'0','66e49250b2a0a2a35c5798228e184ba0c90203a8c4daf08fb93005195407fbb9','{"coalitions":{"heat":["heat"]},"dependence":"0f8f3203ef1ca36c7246da26d68e10e9f9e4e0d40dc8df9a8ca8ce0ebe4acf2d","limits":[{"about":["arrival"],"coalition":"heat","limit":2.0}],"measure":"value","own":true,"posterior":null,"sensitive":{"arrival":["late"]}}','limits on what heat may learn','1fc95b8e5e95ea48051ff98c8c46fb2c0a13b5c715f7557a654e90a87201cb61','c482a0d11b2343cfd9916c2980f7c0a0a2d4f752fe9a3e99d57e706bd8d65d72');
INSERT INTO "tacit_entries" VALUES(4,'2026-11-18T20:45:10.835574+00:00','charge','rooms','ana','1','10e649f5d788c1611a82c22cdc1b51fe',NULL,'true_records(arrival; key id; for heat)','c482a0d11b2343cfd9916c2980f7c0a0a2d4f752fe9a3e99d57e706bd8d65d72','9c9e382b2637f5256ff2ee2a9f9b0f344f93bc2f71f75ebe1d58ec18416db4db');
INSERT INTO "tacit_entries" VALUES(5,'2026-11-18T20:45:10.835850+00:00','shown','rooms','ana','0',NULL,'{"shown":[{"application":"heat","attribute":"arrival","epsilon":"1","is_public":false,"line":"361934c16de867db5709c14f38d1a982"}],"standing":[{"about":["arrival"],"applications":["heat"],"coalition":"heat","leakage":0.2260442201038148,"limit":2.0,"posterior":0.5381015262244488,"sees":{"arrival":"1"},"worst":"arrival is sensitive with probability 0.5381 given arrival suppressed"}]}','shown: arrival to heat','9c9e382b2637f5256ff2ee2a9f9b0f344f93bc2f71f75ebe1d58ec18416db4db','3691f389fd245c0adfe81cfe724e74cb411ad5253a6766095f6ae07b247856d6');
INSERT INTO "tacit_entries" VALUES(6,'2026-11-18T20:45:10.935951+00:00','grant','wards',NULL,'5',NULL,NULL,'','3691f389fd245c0adfe81cfe724e74cb411ad5253a6766095f6ae07b247856d6','0b0af725a9d8a82ca8b7136b2d85957a6b5ab11f578aa8bea9845b76b5095d78');
INSERT INTO "tacit_entries" VALUES(7,'2026-11-18T20:45:11.141801+00:00','charge','wards','ana','999999999339/1000000000000','7cc0ca6ffced0f3ac415af61ab7b522f','# A Tacit policy: what must stay secret, about whom, and what the world already knows.
# Everything in this file is public. `tacit check` says in plain words what it protects and what not.
name: policy

# The values that a person''s record may have. Declared here, never read off the data.
domain:
  room: {categories: [a, b]}
  arrival: {categories: [early, late]}

# What a release must not give away.
secrets:
  attributes: [arrival]

# What is public about the data set anyway.
known: []

# Whether it is secret who is in the data: public or secret.
presence: public
','table of arrival by room','0b0af725a9d8a82ca8b7136b2d85957a6b5ab11f578aa8bea9845b76b5095d78','4d9fb86eaf931a171abf131c19043dda09f1e62b802e378397e5636acd14c4bb');
INSERT INTO "tacit_entries" VALUES(8,'2026-11-18T20:45:11.142193+00:00','table','wards','ana','0',NULL,'{"again":false,"promises":false,"public":["room"],"sensitive":["arrival"]}','published: table of arrival by room','4d9fb86eaf931a171abf131c19043dda09f1e62b802e378397e5636acd14c4bb','1cae17a44092c1977bb93bd0e023a3a0f945bbe62d6dde60a1c79f2c38915ef7');
INSERT INTO "tacit_entries" VALUES(9,'2026-11-18T20:45:11.171323+00:00','charge','wards','ana','999999999339/1000000000000','7cc0ca6ffced0f3ac415af61ab7b522f',NULL,'table of arrival by room','1cae17a44092c1977bb93bd0e023a3a0f945bbe62d6dde60a1c79f2c38915ef7','0959f7f9ff17b4e99e1d248892b30922cd5ab344b2dde5cb2c950ab8a57738ed');
INSERT INTO "tacit_entries" VALUES(10,'2026-11-18T20:45:11.171709+00:00','table','wards','ana','0',NULL,'{"again":false,"promises":false,"public":["room"],"sensitive":["arrival"]}','published: table of arrival by room','0959f7f9ff17b4e99e1d248892b30922cd5ab344b2dde5cb2c950ab8a57738ed','8ee2562e8fc9f036677e308e23571dc3e570666eacacdc4b429338a05a9e0cd3');
INSERT INTO "tacit_entries" VALUES(11,'2026-11-18T20:45:11.213029+00:00','charge','wards','ana','1/2','7cc0ca6ffced0f3ac415af61ab7b522f',NULL,'count(arrival == ''late'')','8ee2562e8fc9f036677e308e23571dc3e570666eacacdc4b429338a05a9e0cd3','0fb0b60f08019cbf4f297c9cd0f8229f1b8e9fee2fd73efee92807fc771ace9b');
INSERT INTO "tacit_entries" VALUES(12,'2026-11-18T20:45:11.226269+00:00','charge','wards','ana','1/2','7cc0ca6ffced0f3ac415af61ab7b522f',NULL,'count(arrival == ''late'')','0fb0b60f08019cbf4f297c9cd0f8229f1b8e9fee2fd73efee92807fc771ace9b','fb982a516559a92d577b33a59aef8c3fd44ffc2ca767e55b87dd4d5fba781ff1');
INSERT INTO "tacit_entries" VALUES(13,'2026-11-18T20:45:11.298614+00:00','grant','town',NULL,'2',NULL,NULL,'','fb982a516559a92d577b33a59aef8c3fd44ffc2ca767e55b87dd4d5fba781ff1','4bd616e5aaff8ff9369f9f70027d8bc1eb82207c820f4642376accd18ffddf1d');
INSERT INTO "tacit_entries" VALUES(14,'2026-11-18T20:45:11.327407+00:00','charge','town','ana','1','62a0541f54e8ba2c6fcd977d9779d8dc','# A Tacit policy: what must stay secret, about whom, and what the world already knows.
# Everything in this file is public. `tacit check` says in plain words what it protects and what not.
name: town

# The values that a person''s record may have. Declared here, never read off the data.
domain:
  visited: {items: [gym, cafe, park]}

# What a release must not give away.
secrets:
  values: {visited: [1]}

# What is public about the data set anyway.
known: []

# Whether it is secret who is in the data: public or secret.
presence: public
','monitor db7fe41edd875cc9: gym, threshold 5','4bd616e5aaff8ff9369f9f70027d8bc1eb82207c820f4642376accd18ffddf1d','4fd2c3f4fba7677327d3d3cdd6c4387c580cbc678a8995220f0ae8bed9894bfa');
CREATE TABLE tacit_head (
	id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	count INTEGER NOT NULL, 
	head TEXT NOT NULL, 
	seal TEXT NOT NULL, 
	key_mark TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "tacit_head" VALUES(1,3,14,'4fd2c3f4fba7677327d3d3cdd6c4387c580cbc678a8995220f0ae8bed9894bfa','db4c7f14786086a254e71917b23f60fe622e608f5b16fe8525cbd9d219ebd58f','2dd0fa8b2f2bce28ac0be407c213fe16a705aee3e0e5f8af8e746a472a28b970');
CREATE TABLE tacit_lines (
	dataset TEXT NOT NULL, 
	line TEXT NOT NULL, 
	epsilon TEXT NOT NULL, 
	entry INTEGER NOT NULL, 
	seal TEXT NOT NULL, 
	PRIMARY KEY (dataset, line)
);
INSERT INTO "tacit_lines" VALUES('rooms','da2661e916d785486d0e42daf10e28725e6d751bd9b292d7b55da2dfe2919443','1',4,'e30f2b226ad48a9dcfd23d17d59ea311179a2a0ad827fe15867fd36ab69583bc');
CREATE TABLE tacit_runs (
	run TEXT NOT NULL, 
	job TEXT NOT NULL, 
	first INTEGER NOT NULL, 
	last INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	PRIMARY KEY (run)
);
INSERT INTO "tacit_runs" VALUES('a run','a job',12,12,'reserved');
CREATE TABLE tacit_seals (
	place TEXT NOT NULL, 
	under TEXT NOT NULL, 
	seal TEXT NOT NULL, 
	PRIMARY KEY (place)
);
INSERT INTO "tacit_seals" VALUES('a725b9d35bb66f7d0e5b39419ab4bd22564acc446819df28076397a7871985ce','a72','727bd7e47f0a251185afe0f76039fdfc10b307f46290ae1e161bca170e9da4ec');
INSERT INTO "tacit_seals" VALUES('a72','a7','d63a2968ec7bd04e736c6874c9cdf04ebc5a5e2d672269abbe9555f858d44f36');
INSERT INTO "tacit_seals" VALUES('a7','a','415836da99643a8de9ac7b25ba5735f86393012b346f992dab53b9903fa4aef2');
INSERT INTO "tacit_seals" VALUES('1b28f20fcafb73631818a43368d5e9958d62ccfa0aafdcf62268f0fba0e1eaf5','1b2','a8ac6579e45e8e3d1cb20eb4b2ded90cddb2af4941368c355bc90c50c5b00d47');
INSERT INTO "tacit_seals" VALUES('29c845a64a9934c2fafdeb9a7a36f0f0a515d6a9a7356aa295341f5ec78e6313','29c','1fd5b081e0d5a5062924245466aad5e89659db7c9215e63decb679c4d2a4520b');
INSERT INTO "tacit_seals" VALUES('1b2','1b','f6caa493fc02dc2a52b6030913c0f423c7adea47d6fb9667de647d417ff23767');
INSERT INTO "tacit_seals" VALUES('29c','29','bcc6f3a8bd8c34ed202094793918cac86e74e7a2949ada3ad57b23eb99e0183a');
INSERT INTO "tacit_seals" VALUES('1b','1','369b0ba47b65043174c9fda7a001e15bda70a804022eebbf9d6c4d01303b3396');
INSERT INTO "tacit_seals" VALUES('1','','805accd0a752131e9717c7c263ed215c008953a8ad403b92322d71accffd6645');
INSERT INTO "tacit_seals" VALUES('b95d3ad57b5bfbb56bb93c6a6b3e7400f4b177e47f9bdb517d767bf4750a5254','b95','9e6d84cc9d1aadceb307bf3b19494ba26d26e89c5721b350a4dc4d7428a11f38');
INSERT INTO "tacit_seals" VALUES('b95','b9','32685483bb8479615026ce88dd5e5f153c7aebb4682a6cf2a270767a45ddf1c2');
INSERT INTO "tacit_seals" VALUES('b9','b','bd96065b603579418f3913d296e3baa7ec05fb5ab2b1dbdc290b72cd5ba4bf20');
INSERT INTO "tacit_seals" VALUES('b','','dca5c5a5a3a0cf4304a8f37f4a09e760246ed6703613343df9b9bdefd50fa01b');
INSERT INTO "tacit_seals" VALUES('dbc4883ab0110dcf28386f6ed8b3ca04eb25d2ee8f4ff655ce8a6ac3216b802a','dbc','bbff1798d92ade7dca983999a3202f2c37a19e2589a9f61e4f66c0d771083444');
INSERT INTO "tacit_seals" VALUES('ca6a5c6c7155714e0dff21851ea59c0b4ad63b06950bf748e35c809bc5ad9e54','ca6','e2c7bfa34679b881b562f8af932c54adf8526cd99f27e52fea8895258b174e48');
INSERT INTO "tacit_seals" VALUES('a0e4abe733caa795e40920c1e5a79372332248c430bff5ffaf0b783a276bb368','a0e','26220beee93ba686b1f0734e3131f589d40e7df68f2da84c6352e773a56ac49a');
INSERT INTO "tacit_seals" VALUES('d67d5451e3c0f757627b07b5a43b25df153d162ce7e25710a198f32120c173f1','d67','2eba491eac3b6b578b0b5f3b6344a5ffc760bc97e0a8cae9c0634071200ff819');
INSERT INTO "tacit_seals" VALUES('49f3895761b55869b1e0b160d5026eed0e0b6711750809e6a2432f4f5de789aa','49f','cef95a0673ece9a69567822f1a1a92961ea9ca94678efdff0886a34c7757848a');
INSERT INTO "tacit_seals" VALUES('49f','49','153f68f34d905503b42aa03c7aa75a20cba1d12e8f9fbc48a1edf027db460d2a');
INSERT INTO "tacit_seals" VALUES('a0e','a0','f7f14c43699350faf3c017b898b54b85707122c69ac706f5ce3c855b361ce184');
INSERT INTO "tacit_seals" VALUES('ca6','ca','8b3c0bfd22d7f14bb170f0ae4d2b26a70c2a5c747807a4e8a0f1fff58269fda4');
INSERT INTO "tacit_seals" VALUES('d67','d6','cb8fcd3ddb1586479c7bfc3ba135ca9949264c89941b58d83b159687e2d90ce2');
INSERT INTO "tacit_seals" VALUES('dbc','db','60397c3624ce17f3d1fab9ac9bc084d1e746303232899c3181b846f98c235c01');
INSERT INTO "tacit_seals" VALUES('49','4','983faf5feefa8734158df3fc402ee5143e9b9379264198e6600e5eb612070051');
INSERT INTO "tacit_seals" VALUES('a0','a','1782a4cf6fa28f90a1249e1adabed6cb94dc401e94c7c9875d3076184d9d4570');
INSERT INTO "tacit_seals" VALUES('ca','c','c4c340ee3c8594ad14e09e7d8f0bc49284e7e00ba91ca4adfb5354ea4375ff71');
INSERT INTO "tacit_seals" VALUES('d6','d','d5ce1ae9c36116e2ca8cce44628182168b498b778db4c3841645cfbde068c0a2');
INSERT INTO "tacit_seals" VALUES('db','d','136d4f8da23da34f5644c2cb978c4397a3cb8148c9db8ab9a2d66965139f7802');
INSERT INTO "tacit_seals" VALUES('4','','9af38e6eeb46174f2e2cff2e6a48e06004febe8493864ddbea18ea0e9a6d28ef');
INSERT INTO "tacit_seals" VALUES('c','','8ca7c1d69c5949b8e1e639e48c3bf949314a4292d589fb797e029e7f0844ebe3');
INSERT INTO "tacit_seals" VALUES('3673ebc695a6f6b30a6053436e5f23b32c8f5d770f522f2c1fac62e60f922d3a','367','754324a0d9f4821154c030870b6817405dbae17d6197ca971e1623dcf3efc563');
INSERT INTO "tacit_seals" VALUES('367','36','839e52b7c2ae87f1838361a0bb97cbf4692e6eee6367813cbdf9270beb765f3d');
INSERT INTO "tacit_seals" VALUES('36','3','43648efe9661f177327ebfb1fcb324f3586d986da246e1e0c756f27f70d59bea');
INSERT INTO "tacit_seals" VALUES('29eb70a3ad603228ee37c30ca46708ec1b2f6532617e2a2601982f6f44407185','29e','c36a91df0831e8fe2bfe6277db9247b736517f34b87f0993f0c965a95b23a153');
INSERT INTO "tacit_seals" VALUES('29e','29','23a3fb44070f760bae3e76cf9646b2a201a4e63aefe0084d04bab16356711277');
INSERT INTO "tacit_seals" VALUES('29','2','ac0bf772f0f448ef45a80f0de4eb2ced7bf80e4bf2e53e42ff89b7b995db588b');
INSERT INTO "tacit_seals" VALUES('fb9cc48767c4c197579769197b92d8885e004fc4a04b8ef5de53acfde24fec3d','fb9','01524d5246b34c4bbc677cfbdaef59f153ca94a9af263bb3b31ec4f3353b14d4');
INSERT INTO "tacit_seals" VALUES('fb9','fb','ef1cdfc57f4af86de80b218d7c2ee6f9a22c14520d9f7bf58a09bda78b6a5b12');
INSERT INTO "tacit_seals" VALUES('fb','f','58fe5177ad8849c6ea265bac4cff10b917b476743867be5370b78d273a99caf5');
INSERT INTO "tacit_seals" VALUES('f','','041b38f624e502ab0ba5a25c45eaea52c4173c9032e3e39fbab44ad3be0a3de3');
INSERT INTO "tacit_seals" VALUES('96c6776376da9ad7722bf7496b63c3ae38c486d5ce23fc782d1bdb582eedd3da','96c','b91d585ff791f1b1d75b83fcadd7b0d18904f6aaa6beb4aecd175cd1601c7c0d');
INSERT INTO "tacit_seals" VALUES('d5e22f33d0b8899b45ced23eb551f64b763c0e0d832f62c1f4dd0dfba24a2aba','d5e','0aafb0efdd29d9f034e6ec5b22ec3121dcd449c88a2bdbd94c7359f0f624cf10');
INSERT INTO "tacit_seals" VALUES('96c','96','80d9e5594d4e1b6c1260878ed2c94c8325fd335907b49c63eb09b875e0a9a8bf');
INSERT INTO "tacit_seals" VALUES('d5e','d5','226d23ef073c030e27bfc4846847dfe725569fee81a9581f33bac9bca7037d54');
INSERT INTO "tacit_seals" VALUES('96','9','4d7901bc670f0be854866af016f25c6d7e335f774b4cf22e85ebee68fc0a477c');
INSERT INTO "tacit_seals" VALUES('d5','d','efa23a4e49ce069646a335cf02fb8b20f53374e19dd549170747385250d3f585');
INSERT INTO "tacit_seals" VALUES('d','','4d8501ce1ab669be3bd61664c9bf85dccaa2ab3e8507408ed634f82e8e9aa197');
INSERT INTO "tacit_seals" VALUES('aba34e9f850559d802ab708215651c2d45690fd25db85345ff1e91cef4186abf','aba','ec39a75acedce1008d4866fe9d98605f75c457cc13508e97cc96ff699c9b6f7c');
INSERT INTO "tacit_seals" VALUES('592f1759d1cc43e8d86b9c2dce6bda20c110f542ebf0a42b41603a5dcb3e80fe','592','481016f3555d36cb5ee967a430d992f17edece89a6f7c4166efe5e4e9bde6506');
INSERT INTO "tacit_seals" VALUES('2a896808d989b2f7bee2135cd4dfa6c78dd2ed1e7de0a942874ec1f5930a11f7','2a8','ed6216a4cf0406a7e89a75a96939929284d7c1a850b651ed3020f5d1986f475a');
INSERT INTO "tacit_seals" VALUES('2a8','2a','d23e66bae0229f86705b0bacdf7a096622f80f4806f40784353b5cb48d7cb8fe');
INSERT INTO "tacit_seals" VALUES('592','59','bc342ed5f996b8baf039b11082ca36b213b7d98e3eaa73a9cc23b6aca313d5a8');
INSERT INTO "tacit_seals" VALUES('aba','ab','41310bb196bf2d3117a787e8f770c0ee032ddecbb83126bdd0adec813aa6fb9f');
INSERT INTO "tacit_seals" VALUES('2a','2','46c249cffa57b0008c78d78d2c5358336b76c486c0e8e8cb73da314992f922a9');
INSERT INTO "tacit_seals" VALUES('59','5','d07f4d1d23ca528573c06151c0fa2d8b351cfe96009c6338c5a87dd2e8ddf94b');
INSERT INTO "tacit_seals" VALUES('ab','a','d1fd817a1a1cadec5c18664b149a93189c759cda574d2dffef2e6ea3129b07bb');
INSERT INTO "tacit_seals" VALUES('2','','929526ee3d46bbdc6ae52d3aaf06af4f0940d4d1cea28b33eaf95b12f6641a75');
INSERT INTO "tacit_seals" VALUES('5','','7081850aa06e773a0cab4c5e3d8da270327f88d3f8366ae4c5f214a024a554e1');
INSERT INTO "tacit_seals" VALUES('8752ccfa8e603b41e7700ef7126fc8c6e63e7b43249030285457a9d3a13fddf8','875','2ec0cab0118b6b705dc5d707a11145c031b247de8b839ea81fee7d5f0f3a0510');
INSERT INTO "tacit_seals" VALUES('875','87','eb43d3cfac40423e77c64a96f44a52733b9738ef2d7996b8735f7830025993e2');
INSERT INTO "tacit_seals" VALUES('87','8','514bff8e2dcc84b4504d86f1caed669eeea3ea2ade28ea97dfbc1f684fb0eef9');
INSERT INTO "tacit_seals" VALUES('8','','a800de6233e38cd0cc58839d03bad7da46a06ffcb1b4dbc48036f3bd99334929');
INSERT INTO "tacit_seals" VALUES('ad9328d5e8099125379c823eb4b5d3db921cc52d07f815b1e7d2d451c98d372f','ad9','b0b739b4099a15941b5cd5a21320492a8f51f5b62fef3f9bee754dfc597b5f5f');
INSERT INTO "tacit_seals" VALUES('9ca82c49356fad3175e29d828fd02733f7f4b53edeb15177ea6d7527864281d2','9ca','f17ec173059ea8ea78639522989df18e768841b20299ab156fff4c9ca93bd890');
INSERT INTO "tacit_seals" VALUES('3817173ab7e992a06a419f51e4cffe9eafcd3aa6fe1c2b51175bc579af5c0c15','381','07f646ded76e2f0b68210489d6bec58c00ec29c7833e49c6d33093987505a9b0');
INSERT INTO "tacit_seals" VALUES('381','38','05e792fd9c862b7668d124fc7b337521a5f180c21280ed1820f88b61f0a6d77b');
INSERT INTO "tacit_seals" VALUES('9ca','9c','19abd749c6172004eba4a4e88cf6dc060cadbe9399f7c4fba1363e66d4b0fba8');
INSERT INTO "tacit_seals" VALUES('ad9','ad','87a6298edd9255d2995e1b61cf1683726bd8aa909987e402f3f47e011380c57d');
INSERT INTO "tacit_seals" VALUES('38','3','1da0e6718e46a6b802786c86b7626eee85de66153a298857cbc75909d1e22cfc');
INSERT INTO "tacit_seals" VALUES('9c','9','e66810ece8e5d41d8afa58b05781c92910b7fb0b272739dcad5b0b08182ed9b2');
INSERT INTO "tacit_seals" VALUES('ad','a','40bd6c343bb63ca0455e10b5e9310c1083119076a476875c40d98e448ed4a1b2');
INSERT INTO "tacit_seals" VALUES('3','','32ffd9b40587a0046653ad4a0e3a664962b1e6833db2a9a956bec2df2116d78a');
INSERT INTO "tacit_seals" VALUES('9','','d9ae21b519a0e2f13e3c02d55b98f3cbcfb6960b868d10488b5a0565b66b2e9d');
INSERT INTO "tacit_seals" VALUES('a','','09d94683e834a25260f01996b33c3e3cd4c23f85b068f26d55314f4aec4ed91d');
CREATE TABLE tacit_state (
	kind TEXT NOT NULL, 
	dataset TEXT NOT NULL, 
	name TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (kind, dataset, name)
);
INSERT INTO "tacit_state" VALUES('name','','rooms','["rooms"]');
INSERT INTO "tacit_state" VALUES('name','rooms','ana','["ana"]');
INSERT INTO "tacit_state" VALUES('capped','rooms','','true');
INSERT INTO "tacit_state" VALUES('dataset','rooms','','{"limits":"66e49250b2a0a2a35c5798228e184ba0c90203a8c4daf08fb93005195407fbb9","reached":[["heat","arrival","1",false]]}');
INSERT INTO "tacit_state" VALUES('line','rooms','361934c16de867db5709c14f38d1a982','[["heat","arrival","1"]]');
INSERT INTO "tacit_state" VALUES('name','','wards','["wards"]');
INSERT INTO "tacit_state" VALUES('name','wards','ana','["ana"]');
INSERT INTO "tacit_state" VALUES('column','wards','arrival','{"told":[8,{"again":false,"promises":false,"public":["room"],"sensitive":["arrival"]}]}');
INSERT INTO "tacit_state" VALUES('column','wards','room','{"told":[8,{"again":false,"promises":false,"public":["room"],"sensitive":["arrival"]}]}');
INSERT INTO "tacit_state" VALUES('name','','town','["town"]');
INSERT INTO "tacit_state" VALUES('name','town','ana','["ana"]');
CREATE INDEX tacit_entries_by_dataset ON tacit_entries (dataset, number);
CREATE INDEX tacit_seals_by_under ON tacit_seals (under);
COMMIT;
